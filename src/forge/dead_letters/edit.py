"""An edited payload: checked by the rules of its type, with the envelope of the original."""

from typing import Any

from forge.core.dead_letter import DeadLetter
from forge.core.errors import InvalidPayload
from forge.core.new_job import DispatchOptions
from forge.core.payload_rules import KEY, VERSION, version_in
from forge.core.sensitive.shown import redacted_faults
from forge.definitions.catalog import Catalog, RunStatement


async def edited(
    catalog: Catalog, letter: DeadLetter, payload: Any, ask: RunStatement | None
) -> str:
    """Return an edited payload as JSON, or raise how it breaks the rules of its type.

    Its tenant and its correlation id cannot be edited; the new job gets a new key in any case.
    """
    if faults := redacted_faults(payload):
        first = faults[0]
        message = f"the payload of {letter.job_type}: {first.path} {first.message}"
        raise InvalidPayload(message, first.path, faults)
    payload = _versioned(payload, letter)
    encoder = await catalog.find(letter.job_type, ask)
    if encoder.job_type.category is None:
        text = encoder.encode(payload)
        version_in(text)
        return text
    if not isinstance(payload, dict):
        raise InvalidPayload(f"the payload of {letter.job_type}: $ must be an object", "$")
    _refuse_another_envelope(letter, payload)
    options: DispatchOptions = {"idempotency_key": letter.idempotency_key or f"dlq_{letter.dlq_id}"}
    if letter.tenant_id is not None:
        options["tenant_id"] = letter.tenant_id
    if letter.correlation_id is not None:
        options["correlation_id"] = letter.correlation_id
    content = {name: value for name, value in payload.items() if name != KEY}
    return encoder.check_payload(content, options).text


def _versioned(payload: Any, letter: DeadLetter) -> Any:
    """Keep the version that the original payload had in itself, unless the edit says another."""
    original = letter.payload
    if not isinstance(payload, dict) or not isinstance(original, dict) or VERSION not in original:
        return payload
    return {VERSION: original[VERSION]} | payload


def _refuse_another_envelope(letter: DeadLetter, payload: dict[str, Any]) -> None:
    kept = {"tenant_id": letter.tenant_id, "correlation_id": letter.correlation_id}
    for name, value in kept.items():
        given = payload.get(name)
        if value is not None and given is not None and str(given).lower() != str(value):
            message = (
                f"$.{name} cannot be edited: the new job keeps the {name} of the dead letter; "
                f"leave {name} out of the payload"
            )
            raise InvalidPayload(message, f"$.{name}")
