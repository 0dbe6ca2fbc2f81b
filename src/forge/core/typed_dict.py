"""TypedDicts of the standard library, in the form that pydantic takes before Python 3.12."""

import sys
import types
import typing
from typing import Any, get_args, get_origin, get_type_hints

import typing_extensions


def readable(hint: Any) -> Any:
    """Return the same type with every TypedDict in it as pydantic can read it."""
    if sys.version_info >= (3, 12):
        return hint
    if typing.is_typeddict(hint):
        return _rebuilt(hint) if type(hint).__module__ == "typing" else hint
    inner = get_args(hint)
    if not inner or get_origin(hint) is typing.Literal:
        return hint
    changed = tuple(readable(part) for part in inner)
    if all(new is old for new, old in zip(changed, inner, strict=True)):
        return hint
    if isinstance(hint, types.UnionType):
        return typing.Union[changed]  # noqa: UP007
    return hint.copy_with(changed) if hasattr(hint, "copy_with") else get_origin(hint)[changed]


def _rebuilt(hint: Any) -> Any:
    fields = {
        name: typing_extensions.Required[readable(kind)]
        if name in hint.__required_keys__
        else typing_extensions.NotRequired[readable(kind)]
        for name, kind in get_type_hints(hint).items()
    }
    rebuilt = typing_extensions.TypedDict(hint.__name__, fields)  # type: ignore[misc]
    rebuilt.__module__, rebuilt.__doc__ = hint.__module__, hint.__doc__
    return rebuilt
