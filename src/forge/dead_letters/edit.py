"""An edited payload: held to the rules of its type, with the envelope of the original."""

from typing import TYPE_CHECKING, Any

from forge.core.dead_letter import DeadLetter
from forge.core.errors import InvalidPayload
from forge.core.rules import KEY, VERSION, version_in
from forge.core.shown import redacted_faults
from forge.core.wish import Options

if TYPE_CHECKING:
    from forge.app import Forge


async def edited(app: "Forge", letter: DeadLetter, payload: Any, conn: Any) -> str:
    """Return an edited payload as JSON, or say what its type has against it.

    Whose it is and what it belongs to cannot be edited; its key is made anew in any case.
    """
    if faults := redacted_faults(payload):
        first = faults[0]
        message = f"the payload of {letter.job_type}: {first.path} {first.message}"
        raise InvalidPayload(message, first.path, faults)
    payload = _versioned(payload, letter)
    kind = await app._job_type(letter.job_type, conn)
    if kind.defaults.category is None:
        text = kind.encode(payload)
        version_in(text)
        return text
    if not isinstance(payload, dict):
        raise InvalidPayload(f"the payload of {letter.job_type}: $ must be an object", "$")
    _refuse_another_envelope(letter, payload)
    options: Options = {"idempotency_key": letter.idempotency_key or f"dlq_{letter.dlq_id}"}
    if letter.tenant_id is not None:
        options["tenant_id"] = letter.tenant_id
    if letter.correlation_id is not None:
        options["correlation_id"] = letter.correlation_id
    content = {name: value for name, value in payload.items() if name != KEY}
    return kind.rule(content, options).text


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
