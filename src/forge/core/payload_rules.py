"""Payload rules: what the payload of a category must contain, and what it must not."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple
from uuid import UUID

from forge.core.errors import Fault, InvalidPayload, InvalidValue
from forge.core.new_job import FIRST_VERSION, check_name, check_version, is_tenant
from forge.core.payload import HARD_LIMIT, decode, encode
from forge.core.sensitive.findings import sensitive_faults
from forge.core.sensitive.shapes import CARD_NUMBER, shape_of

Category = Literal[
    "ingestion",
    "sync",
    "recurrence",
    "orchestration",
    "documents",
    "notifications",
    "export",
    "maintenance",
]
CATEGORIES: Mapping[str, str] = {
    "ingestion": "mail or files fetched, parsed, stored and mapped",
    "sync": "calendars and similar data, pulled or pushed",
    "recurrence": "periods generated, and the work that they bring",
    "orchestration": "one step of a larger process",
    "documents": "documents scanned, indexed or classified",
    "notifications": "mail or in-app messages sent",
    "export": "data handed out, or a customer leaving",
    "maintenance": "clean-up and archival",
}
# The primary objects of a category: a payload has at least one of these fields, or another that
# ends in _id. Exports and maintenance concern the tenant itself.
REFERENCES: Mapping[str, tuple[str, ...]] = {
    "ingestion": ("connection_id", "external_message_id"),
    "sync": ("connection_id", "calendar_id", "event_id"),
    "recurrence": ("recurrence_id", "period_id"),
    "orchestration": ("execution_id", "step_id"),
    "documents": ("document_id",),
    "notifications": ("notification_id", "recipient_id", "user_id"),
    "export": (),
    "maintenance": (),
}
# The fields of every payload with a category, in addition to its references.
TENANT, CORRELATION, KEY = "tenant_id", "correlation_id", "idempotency_key"
ENVELOPE = (TENANT, CORRELATION, KEY)
VERSION = "payload_version"
# Larger payloads are stored with a warning.
RECOMMENDED_SIZE = 10_240


class CheckedPayload(NamedTuple):
    """A payload that follows the rules of its category; without a key the database computes it."""

    text: str
    key: str | None
    tenant_id: int
    correlation_id: UUID
    payload_version: str


def check_category(category: object) -> str | None:
    """Return a category, or raise InvalidValue if it does not exist."""
    if category is not None and category not in CATEGORIES:
        raise InvalidValue(f"category must be one of {', '.join(CATEGORIES)}, not {category!r}")
    return category  # type: ignore[return-value]


def rule_faults(
    payload: Any, category: str, requires: Sequence[str] | None, allowed: Sequence[str] = ()
) -> list[Fault]:
    """Return the faults of a payload of a category; `payload` is plain JSON."""
    if not isinstance(payload, dict):
        return [Fault("$", "must be an object with tenant_id, correlation_id and idempotency_key")]
    faults = [fault for name in ENVELOPE if (fault := _envelope_fault(name, payload.get(name)))]
    if requires is None:
        faults += _reference_faults(payload, category)
    else:
        faults += required_faults(payload, [name for name in requires if name not in ENVELOPE])
    if not is_version(payload.get(VERSION, FIRST_VERSION)):
        faults.append(Fault(f"$.{VERSION}", 'must be text of 1 to 32 characters, such as "1.0"'))
    # The envelope has its own rules: a key may contain long numbers.
    content = {name: value for name, value in payload.items() if name not in ENVELOPE}
    if (shape := shape_of(str(payload.get(KEY)))) not in (None, CARD_NUMBER):
        faults.append(Fault(f"$.{KEY}", f"looks like {shape}; build the key from ids"))
    return faults + sensitive_faults(content, allowed)


def required_faults(payload: Any, requires: Iterable[str]) -> list[Fault]:
    """Return a fault for each required field that is missing or empty."""
    if not isinstance(payload, dict):
        return [Fault("$", f"must be an object with {', '.join(requires)}")]
    missing = [name for name in requires if _is_missing(payload, name)]
    return [Fault(f"$.{name}", "is required; pass the id of the object") for name in missing]


def is_version(value: object) -> bool:
    """Whether this is a valid payload version; None is valid."""
    try:
        return value is None or bool(check_version(value))
    except InvalidValue:
        return False


def version_in(text: str) -> str | None:
    """Return the version in a payload without a category; None if it has none.

    A version that is not text is an ordinary field there.
    """
    # Search for the name first: most payloads do not have it and need not be decoded.
    plain = decode(text) if f'"{VERSION}"' in text else None
    found = plain.get(VERSION) if isinstance(plain, dict) else None
    if not isinstance(found, str):
        return None
    if not is_version(found):
        raise InvalidPayload(
            f'$.{VERSION} must be text of 1 to 32 characters, such as "1.0"', f"$.{VERSION}"
        )
    return found


def agreed_version(inside: str | None, outside: str | None) -> str:
    """Return the version of the payload or the argument; if both are given they must agree."""
    if inside is not None and outside is not None and inside != outside:
        raise InvalidPayload(
            f"$.{VERSION} in the payload and the argument {VERSION} differ; leave one of them out",
            f"$.{VERSION}",
        )
    return inside or outside or FIRST_VERSION


def merged_envelope(payload: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Merge the envelope fields of payload and arguments; values in both must agree."""
    found = {}
    for name in ENVELOPE:
        inside, outside = payload.get(name), given.get(name)
        values = {_as_text(name, value) for value in (inside, outside) if value is not None}
        if len(values) > 1:
            raise InvalidPayload(
                f"$.{name} in the payload and the argument {name} differ; leave one of them out",
                f"$.{name}",
            )
        value = outside if inside is None else inside
        if value is not None:
            found[name] = str(value) if isinstance(value, UUID) else value
    return found


class PayloadValidator:
    """Checks payloads of a category with the same rules as dispatch.

    >>> payload = PayloadValidator.create_payload(
    ...     tenant_id=123,
    ...     correlation_id="550e8400-e29b-41d4-a716-446655440000",
    ...     idempotency_key="email_fetch_conn_456",
    ...     connection_id=456,
    ... )
    >>> PayloadValidator.validate_payload(payload, "ingestion")
    (True, [])
    >>> PayloadValidator.validate_payload({**payload, "password": "…"}, "ingestion")[0]
    False
    """

    @staticmethod
    def validate_payload(
        payload: Any,
        category: str,
        additional_required: Sequence[str] | None = None,
        *,
        requires: Sequence[str] | None = None,
        allow_sensitive: Sequence[str] = (),
        limit: int = HARD_LIMIT,
    ) -> tuple[bool, list[str]]:
        """Return whether a payload can be dispatched, and each fault with its path.

        `requires` replaces the references of the category, as for a job type.
        """
        if category not in CATEGORIES:
            return False, [f"category must be one of {', '.join(CATEGORIES)}"]
        try:
            plain = decode(encode(payload, what="the payload", limit=limit))
        except InvalidPayload as error:
            return False, [str(error)]
        faults = rule_faults(plain, category, requires, allow_sensitive)
        if isinstance(plain, dict):
            others = set(additional_required or ()) - set(requires or ()) - set(ENVELOPE)
            faults += required_faults(plain, sorted(others))
        return not faults, [f"{fault.path} {fault.message}" for fault in faults]

    @staticmethod
    def create_payload(
        tenant_id: int,
        correlation_id: UUID | str,
        idempotency_key: str,
        **references: Any,
    ) -> dict[str, Any]:
        """Return a payload with the fields that every category requires and these references."""
        values = {TENANT: tenant_id, CORRELATION: str(correlation_id), KEY: idempotency_key}
        for name, value in values.items():
            if (fault := _envelope_fault(name, value)) is not None:
                raise InvalidPayload(f"{fault.path} {fault.message}", fault.path)
        return values | references


def _envelope_fault(name: str, value: Any) -> Fault | None:
    match name:
        case "tenant_id" if not is_tenant(value):
            what = "must be a whole number of 64 bits: the tenant of the job"
        case "correlation_id" if _uuid(value) is None:
            what = "must be a UUID: the operation that the job is part of"
        case "idempotency_key" if not _is_key(value):
            what = "must be text of 1 to 255 characters, unique per operation of the tenant"
        case _:
            return None
    return Fault(f"$.{name}", f"is required and {what}" if value is None else what)


def _uuid(value: Any) -> UUID | None:
    if value is None or isinstance(value, UUID):
        return value
    try:
        return UUID(value) if isinstance(value, str) else None
    except ValueError:
        return None


def _is_key(value: Any) -> bool:
    try:
        check_name(value, what=KEY)
    except InvalidValue:
        return False
    return True


def _reference_faults(payload: Mapping[str, Any], category: str) -> list[Fault]:
    """Return a fault unless the payload has one of the category's references or another id."""
    names = REFERENCES[category]
    others = (name for name in payload if name.endswith("_id") and name not in ENVELOPE)
    if not names or any(not _is_missing(payload, name) for name in (*names, *others)):
        return []
    what = f"has no reference; {category} jobs carry {' or '.join(names)}, or another field that"
    return [Fault("$", f"{what} ends in _id; declare requires=[…] for other fields")]


def _is_missing(payload: Mapping[str, Any], name: str) -> bool:
    value = payload.get(name)
    if isinstance(value, str):
        return not value.strip(" \t\r\n")
    return value is None or value in ([], {})


def _as_text(name: str, value: Any) -> str:
    return str(_uuid(value) or value) if name == CORRELATION else str(value)
