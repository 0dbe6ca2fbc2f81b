"""Idempotency keys: how a job gets its key if the caller passes none."""

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from forge.core.errors import InvalidValue
from forge.core.job_type import BY_FUNCTION, BY_INPUT, JobType
from forge.core.new_job import check_name

_PATH = re.compile(r"input(\.[^.]+)*")


def check_idempotent(value: object) -> str | Callable[[Any], str] | None:
    """Check the `idempotent` option of a job type."""
    if value is False or value is None:
        return None
    if value is True:
        return BY_INPUT
    if callable(value):
        return value
    if isinstance(value, str) and _PATH.fullmatch(value):
        return value
    raise InvalidValue(
        f'idempotent must be True, False, a path such as "input.payment_id" or a function of the '
        f"input, not {value!r}"
    )


def is_keyed(job_type: JobType, given: str | None) -> bool:
    """Whether jobs dispatched like this have keys; jobs of a category always do."""
    return given is not None or job_type.idempotent is not None or job_type.category is not None


def is_made_here(job_type: JobType) -> bool:
    """Whether the key is computed in Python: from a part of the input, or by a function."""
    return job_type.idempotent not in (None, BY_INPUT)


def key_of(job_type: JobType, value: Any, plain: Any) -> str:
    """Compute the key of one job from its input: `value` as its handler gets it, `plain` as JSON.

    It includes the type's name, so that two types can use the same id.
    """
    if job_type.idempotent == BY_FUNCTION:
        raise InvalidValue(
            f"the idempotency key of {job_type.name} is computed by a function that this process "
            "does not have; pass idempotency_key"
        )
    by_function = callable(job_type.idempotent)
    found = _by_function(job_type, value) if by_function else _by_path(job_type, plain)
    return check_name(f"{job_type.name}:{found}", what=f"the idempotency key of {job_type.name}")


def _by_function(job_type: JobType, value: Any) -> Any:
    assert callable(job_type.idempotent)
    found: Any = job_type.idempotent(value)
    if found is None:
        raise InvalidValue(
            f"the function that computes the idempotency keys of {job_type.name} returned None; "
            "return a value that identifies the job"
        )
    return found


def _by_path(job_type: JobType, plain: Any) -> str:
    path, found = str(job_type.idempotent), plain
    for step in path.split(".")[1:]:
        found = found.get(step) if isinstance(found, dict) else None
    if found is None or isinstance(found, dict | list):
        raise InvalidValue(
            f"{job_type.name} needs {path} for its idempotency key, but the input has no value "
            "there; set it, or pass idempotency_key"
        )
    return _written(found)


def _written(value: Any) -> str:
    """Format a value as jsonb does, so that Python and forge_dispatch() compute the same key."""
    match value:
        case bool():
            return "true" if value else "false"
        case float():
            text = format(Decimal(repr(value)), "f")
            return text if value else text.removeprefix("-")
    return str(value)
