"""Validates the inputs of one job type and encodes them for dispatch."""

from collections.abc import Callable
from typing import Any, NamedTuple
from uuid import UUID

from forge.core.errors import Fault, InvalidPayload
from forge.core.idempotency import is_made_here, key_of
from forge.core.job_type import BY_INPUT, JobType
from forge.core.new_job import DispatchOptions
from forge.core.payload import HARD_LIMIT, decode, encode
from forge.core.payload_rules import (
    ENVELOPE,
    KEY,
    VERSION,
    CheckedPayload,
    agreed_version,
    merged_envelope,
    required_faults,
    rule_faults,
    version_in,
)
from forge.core.sensitive.findings import sensitive_faults
from forge.core.sensitive.redact import REDACTED
from forge.core.sensitive.shown import refuse_redacted
from forge.definitions.job import JobDefinition
from forge.definitions.payload_warnings import PayloadWarnings


class InputEncoder(NamedTuple):
    """Encodes inputs by the handler's own type where its code is here, else by its JSON Schema."""

    job_type: JobType
    # None: the code of the type lives in another process.
    definition: JobDefinition[Any, Any] | None = None
    limit: int = HARD_LIMIT
    check_schema: Callable[[Any], None] | None = None
    payload_warnings: PayloadWarnings | None = None

    def encode(self, value: Any) -> str:
        """Validate one input and encode it as JSON; refuse redacted values that came back."""
        text = self.validate(value)
        if REDACTED in text:
            refuse_redacted(f"the input of {self.job_type.name}", decode(text))
        return text

    def validate(self, value: Any) -> str:
        """Validate one input and encode it as JSON."""
        text = self._encode(value)
        if self.job_type.category is None and self.job_type.requires:
            self._raise(required_faults(decode(text), self.job_type.requires))
        return text

    def encode_and_warn(self, value: Any) -> str:
        """Encode an input of a type without a category, and log warnings about its content."""
        text = self.encode(value)
        if self.payload_warnings is not None:
            self.payload_warnings.sample(self.job_type, text)
        return text

    def examine(self, text: str) -> None:
        """Log warnings about an encoded input of a type without a category."""
        if self.payload_warnings is not None:
            self.payload_warnings.examine(self.job_type, text)

    def payload_version(self, text: str, options: DispatchOptions) -> str:
        """Return the version of an encoded input without a category: its own, or the option."""
        return agreed_version(version_in(text), options.get("payload_version"))

    def idempotency_key(self, text: str) -> str | None:
        """Return the key that the type makes from an encoded input; None: the database makes it.

        A function of the input gets the input as it is stored, decoded as the handler gets it.
        """
        if not is_made_here(self.job_type):
            return None
        plain = decode(text)
        checked = plain if self.definition is None else self.definition.decode_input(text)
        return key_of(self.job_type, checked, plain)

    def check_payload(self, value: Any, options: DispatchOptions) -> CheckedPayload:
        """Check one input by the rules of its category and add the envelope."""
        inside = _envelope_in(value)
        if isinstance(value, dict):
            # A type whose input has these fields gets them from the options, too.
            value = value | merged_envelope(value, options)
        job_type = self.job_type
        assert job_type.category is not None
        plain = decode(self.encode(value))
        if not isinstance(plain, dict):
            self._raise(rule_faults(plain, job_type.category, job_type.requires))
        self._raise(sensitive_faults(_dropped(value, plain), job_type.allow_sensitive))
        payload = _version_in(inside) | plain | merged_envelope(inside | plain, options)
        key = self._key_in(payload)
        made = MADE_OF_THE_INPUT if job_type.idempotent == BY_INPUT else None
        checked = payload | {KEY: key or made}
        self._raise(
            rule_faults(checked, job_type.category, job_type.requires, job_type.allow_sensitive)
        )
        if key is not None:
            payload[KEY] = key
        text = encode(payload, what=f"the payload of {job_type.name}", limit=self.limit)
        if self.payload_warnings is not None:
            self.payload_warnings.check_size(job_type, text)
        version = agreed_version(payload.get(VERSION), options.get("payload_version"))
        return CheckedPayload(
            text, key, payload["tenant_id"], UUID(payload["correlation_id"]), version
        )

    def _encode(self, value: Any) -> str:
        if self.definition is not None:
            return self.definition.encode_input(value, limit=self.limit)
        what = f"the input of {self.job_type.name}"
        text = encode({} if value is None else value, what=what, limit=self.limit)
        if self.check_schema is not None:
            self._check_schema(self.check_schema, decode(text))
        return text

    def _check_schema(self, check: Callable[[Any], None], plain: Any) -> None:
        try:
            check(plain)
        except InvalidPayload:
            if self.job_type.category is None or not isinstance(plain, dict):
                raise
            # The schema may forbid other fields and not know those of the envelope.
            check({name: inner for name, inner in plain.items() if name not in ENVELOPE})

    def _key_in(self, payload: dict[str, Any]) -> Any:
        """Return the key of a payload; None where it has none, or the database makes it."""
        if payload.get(KEY) is not None or not is_made_here(self.job_type):
            return payload.get(KEY)
        what = f"the payload of {self.job_type.name}"
        return self.idempotency_key(encode(payload, what=what, limit=self.limit))

    def _raise(self, faults: list[Fault]) -> None:
        if not faults:
            return
        listed = "; ".join(f"{fault.path} {fault.message}" for fault in faults)
        category = self.job_type.category
        rules = "the rules of its type" if category is None else f"the rules of {category} jobs"
        raise InvalidPayload(
            f"the payload of {self.job_type.name} breaks {rules}: {listed}",
            faults[0].path,
            faults,
        )


def schema_check(name: str, schema: str | None) -> Callable[[Any], None] | None:
    """Return a check of inputs by a JSON Schema; its errors give the path, never the value."""
    if schema is None:
        return None
    # Most processes have the code of what they dispatch, and this import is slow.
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import best_match

    validator = Draft202012Validator(decode(schema))

    def check(value: Any) -> None:
        fault = best_match(validator.iter_errors(value))
        if fault is not None:
            rule = f"{fault.validator} {fault.validator_value!r}"
            raise InvalidPayload(
                f"the input of {name} does not fit: {fault.json_path} breaks the rule {rule}; "
                f"`forge_job_types` has the whole schema",
                fault.json_path,
            )

    return check


MADE_OF_THE_INPUT = "made of the input"


def _envelope_in(value: Any) -> dict[str, Any]:
    """Return the envelope fields of an input; its model may drop them."""
    if not isinstance(value, dict):
        return {}
    return {name: value[name] for name in (*ENVELOPE, VERSION) if value.get(name) is not None}


def _version_in(inside: dict[str, Any]) -> dict[str, Any]:
    """Return the version of an input; its model may drop it."""
    return {VERSION: inside[VERSION]} if VERSION in inside else {}


def _dropped(given: Any, kept: dict[str, Any]) -> dict[str, Any]:
    """Return the fields that the input's model dropped: the caller meant to send them."""
    if not isinstance(given, dict):
        return {}
    return {
        name: _plain(given[name]) for name in given if name not in kept and name not in ENVELOPE
    }


def _plain(value: Any) -> Any:
    try:
        return decode(encode(value, what="a dropped field"))
    except InvalidPayload:
        return "a value that JSON does not have"
