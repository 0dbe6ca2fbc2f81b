"""Idempotency keys: where a job's key comes from when the caller gives none."""

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from forge.core.errors import InvalidValue
from forge.core.wish import LONGEST_NAME, TypeDefaults, check_name

BY_INPUT = "input"
_PATH = re.compile(r"input(\.[^.]+)*")
# What other processes know of a type whose own code makes its keys.
BY_FUNCTION = "function"


def check_idempotent(value: object) -> str | Callable[[Any], str] | None:
    """Read the `idempotent` of a job type."""
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


def is_keyed(kind: TypeDefaults, given: str | None) -> bool:
    """Whether jobs dispatched like this have keys: those of a category always do."""
    return given is not None or kind.idempotent is not None or kind.category is not None


def key_of(kind: TypeDefaults, value: Any, plain: Any, given: str | None) -> str | None:
    """Return the key of one job; None leaves it to the database to make one of the whole input.

    A key of the type's own bears the type's name, so that two types may use the same payment.
    """
    if given is not None:
        return check_name(given, what="idempotency_key")
    if kind.idempotent == BY_FUNCTION:
        raise InvalidValue(
            f"the idempotency key of {kind.name} is made by a function that only its own code has; "
            "pass idempotency_key"
        )
    if callable(kind.idempotent):
        found: Any = kind.idempotent(value)
    elif kind.idempotent is None or kind.idempotent == BY_INPUT:
        return None
    else:
        found = _written(_at(plain, kind.idempotent, kind.name))
    key = f"{kind.name}:{found}"
    if len(key) > LONGEST_NAME:
        raise InvalidValue(
            f"the idempotency key of {kind.name} has {len(key)} characters; "
            f"the most is {LONGEST_NAME}"
        )
    return check_name(key, what="the idempotency key")


def _written(value: Any) -> str:
    """Write a value as jsonb does, so that Python and forge_dispatch() make the same key of it."""
    match value:
        case bool():
            return "true" if value else "false"
        case float():
            text = format(Decimal(repr(value)), "f")
            return text if value else text.removeprefix("-")
    return str(value)


def _at(plain: Any, path: str, name: str) -> Any:
    found = plain
    for step in path.split(".")[1:]:
        found = found.get(step) if isinstance(found, dict) else None
    if found is None or isinstance(found, dict | list):
        raise InvalidValue(
            f"{name} needs {path} for its idempotency key, and the input has no value there"
        )
    return found
