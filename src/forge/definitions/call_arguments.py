"""The arguments of a mutation or an action: one input, or arguments by name."""

import dataclasses
import inspect
from collections.abc import Mapping
from inspect import Parameter
from typing import Annotated, Any, get_args, get_origin

import typing_extensions
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from forge.core.errors import InvalidValue
from forge.core.payload import HARD_LIMIT, decode, encode
from forge.definitions.signature import (
    Handler,
    adapter_of,
    check_context,
    hint_of,
    misfit,
    readable,
)

_BY_NAME = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)


class Arguments:
    """Validates the input of a call and turns it into keyword arguments of the handler."""

    def __init__(self, handler: Handler, name: str, kind: str) -> None:
        parameters = _after_the_context(handler, name, kind)
        hints = {each.name: hint_of(handler, each.name, name) for each in parameters}
        # The parameter that takes the whole input; None: each parameter takes one member.
        self.whole = _whole(hints)
        self._what = f"the input of {name}"
        self.adapter: TypeAdapter[Any] | None = (
            adapter_of(_members(name, parameters, hints), name)
            if self.whole is None
            else adapter_of(hints[self.whole], name)
        )

    def of_python(self, given: Any, *, limit: int = HARD_LIMIT) -> dict[str, Any]:
        """Validate a Python value; without annotations it must be JSON, as over HTTP."""
        given = {} if given is None else given
        if self.adapter is None:
            return self._named(decode(encode(given, what=self._what, limit=limit)))
        try:
            return self._named(self.adapter.validate_python(given))
        except ValidationError as error:
            raise misfit(self._what, error) from None

    def of_json(self, given: Any, *, limit: int = HARD_LIMIT) -> dict[str, Any]:
        """Validate a value that was read from JSON."""
        text = encode({} if given is None else given, what=self._what, limit=limit)
        if self.adapter is None:
            return self._named(decode(text))
        try:
            return self._named(self.adapter.validate_json(text))
        except ValidationError as error:
            raise misfit(self._what, error) from None

    def _named(self, checked: Any) -> dict[str, Any]:
        return dict(checked) if self.whole is None else {self.whole: checked}


def _after_the_context(handler: Handler, name: str, kind: str) -> list[Parameter]:
    parameters = list(inspect.signature(handler).parameters.values())
    if not parameters or parameters[0].kind not in (*_BY_NAME[:1], Parameter.POSITIONAL_ONLY):
        raise InvalidValue(f"{name}: the first parameter is the context; write `async def f(ctx)`")
    check_context(handler, parameters[0], name, kind)
    for each in parameters[1:]:
        if each.kind not in _BY_NAME:
            raise InvalidValue(
                f"{name}: {str(each)!r} cannot be given by name; write out each parameter, or take "
                "one `input: dict`"
            )
    return parameters[1:]


def _whole(hints: dict[str, Any]) -> str | None:
    if len(hints) != 1:
        return None
    ((parameter, hint),) = hints.items()
    return parameter if parameter == "input" or _is_object(hint) else None


def _is_object(hint: Any) -> bool:
    if get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
    given = get_origin(hint) or hint
    return (
        given in (dict, Mapping)
        or dataclasses.is_dataclass(given)
        or typing_extensions.is_typeddict(given)
        or (isinstance(given, type) and issubclass(given, BaseModel))
    )


def _members(name: str, parameters: list[Parameter], hints: dict[str, Any]) -> Any:
    """Return a TypedDict with a member for each parameter, and no others."""
    fields = {each.name: _member(each, readable(hints[each.name])) for each in parameters}
    make: Any = typing_extensions.TypedDict
    members = make(name, fields)
    members.__pydantic_config__ = ConfigDict(extra="forbid")
    return members


def _member(parameter: Parameter, hint: Any) -> Any:
    hint = Any if hint is None else hint
    if parameter.default is Parameter.empty:
        return typing_extensions.Required[hint]
    return typing_extensions.NotRequired[hint]
