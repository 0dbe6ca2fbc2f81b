"""Checking inputs against the schema of a type whose code lives elsewhere."""

from collections.abc import Callable
from typing import Any

from forge.core.errors import InvalidPayload
from forge.core.payload import decode


def input_check(name: str, schema: str | None) -> Callable[[Any], None]:
    """Return what refuses inputs that do not fit the schema; it says where, never what is there."""
    if schema is None:
        return lambda value: None
    # Most processes have the code of what they dispatch, and this takes long to import.
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
