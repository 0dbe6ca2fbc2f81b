"""An edited payload of a job: checked by the rules of its type, with the envelope of the job."""

from typing import Any, NamedTuple
from uuid import UUID

from forge.core.errors import InvalidPayload
from forge.core.new_job import DispatchOptions
from forge.core.payload_rules import KEY, VERSION, version_in
from forge.core.sensitive.shown import refuse_redacted
from forge.definitions.catalog import Catalog, RunStatement


class OriginalPayload(NamedTuple):
    """The payload that is edited, and what the new job keeps of its job."""

    job_type: str
    payload: Any
    # What it is the payload of, for messages.
    what: str
    # A key for the checks; the new job gets one of its own.
    idempotency_key: str
    tenant_id: int | None = None
    correlation_id: UUID | None = None


async def checked_edit(
    catalog: Catalog, original: OriginalPayload, payload: Any, ask: RunStatement | None
) -> str:
    """Return an edited payload as JSON, or raise how it breaks the rules of its type.

    Its tenant and its correlation id cannot be edited; the new job gets a new key in any case.
    """
    refuse_redacted(f"the payload of {original.job_type}", payload)
    payload = _versioned(payload, original)
    encoder = await catalog.find(original.job_type, ask)
    if encoder.job_type.category is None:
        text = encoder.encode(payload)
        version_in(text)
        return text
    if not isinstance(payload, dict):
        raise InvalidPayload(f"the payload of {original.job_type}: $ must be an object", "$")
    _refuse_another_envelope(original, payload)
    options: DispatchOptions = {"idempotency_key": original.idempotency_key}
    if original.tenant_id is not None:
        options["tenant_id"] = original.tenant_id
    if original.correlation_id is not None:
        options["correlation_id"] = original.correlation_id
    content = {name: value for name, value in payload.items() if name != KEY}
    return encoder.check_payload(content, options).text


def _versioned(payload: Any, original: OriginalPayload) -> Any:
    """Keep the version that the original payload had in itself, unless the edit says another."""
    before = original.payload
    if not isinstance(payload, dict) or not isinstance(before, dict) or VERSION not in before:
        return payload
    return {VERSION: before[VERSION]} | payload


def _refuse_another_envelope(original: OriginalPayload, payload: dict[str, Any]) -> None:
    kept = {"tenant_id": original.tenant_id, "correlation_id": original.correlation_id}
    for name, value in kept.items():
        given = payload.get(name)
        if value is not None and given is not None and str(given).lower() != str(value):
            message = (
                f"$.{name} cannot be edited: the new job keeps the {name} of the {original.what}; "
                f"leave {name} out of the payload"
            )
            raise InvalidPayload(message, f"$.{name}")
