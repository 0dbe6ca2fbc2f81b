"""Idempotency keys: where a job's key comes from when the caller gives none."""

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from forge.core.errors import InvalidValue
from forge.core.wish import TypeDefaults, check_name

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


def is_made_here(kind: TypeDefaults) -> bool:
    """Whether a key is made before the database sees the input: of a part of it, or by code."""
    return kind.idempotent not in (None, BY_INPUT)


def key_of(kind: TypeDefaults, value: Any, plain: Any) -> str:
    """Make the key of one job, of the input as its handler gets it, or of plain JSON.

    It bears the type's name, so that two types may use the same payment.
    """
    if kind.idempotent == BY_FUNCTION:
        raise InvalidValue(
            f"the idempotency key of {kind.name} is made by a function that only its own code has; "
            "pass idempotency_key"
        )
    found = _by_function(kind, value) if callable(kind.idempotent) else _by_path(kind, plain)
    return check_name(f"{kind.name}:{found}", what=f"the idempotency key of {kind.name}")


def _by_function(kind: TypeDefaults, value: Any) -> Any:
    assert callable(kind.idempotent)
    found: Any = kind.idempotent(value)
    if found is None:
        raise InvalidValue(
            f"the function that makes the idempotency keys of {kind.name} returned None, one key "
            "for all such jobs; return what tells them apart"
        )
    return found


def _by_path(kind: TypeDefaults, plain: Any) -> str:
    path, found = str(kind.idempotent), plain
    for step in path.split(".")[1:]:
        found = found.get(step) if isinstance(found, dict) else None
    if found is None or isinstance(found, dict | list):
        raise InvalidValue(
            f"{kind.name} needs {path} for its idempotency key, and the input has no value there; "
            "give it one, or pass idempotency_key"
        )
    return _written(found)


def _written(value: Any) -> str:
    """Write a value as jsonb does, so that Python and forge_dispatch() make the same key of it."""
    match value:
        case bool():
            return "true" if value else "false"
        case float():
            text = format(Decimal(repr(value)), "f")
            return text if value else text.removeprefix("-")
    return str(value)
