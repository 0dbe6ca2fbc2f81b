"""What a handler takes and gives, read from its annotations."""

import inspect
from collections.abc import Callable, Iterable
from inspect import Parameter
from types import SimpleNamespace
from typing import Any, get_type_hints

from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError

from forge.core.errors import Fault, InvalidPayload, InvalidValue
from forge.core.path import step_text
from forge.core.typed_dict import readable

Handler = Callable[..., Any]
# So many faults stand in the message of an error, which has them all.
MOST_TOLD = 20
BY_PLACE = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)


def check_function(handler: object, kind: str) -> None:
    """Refuse what a decorator cannot make a job, a mutation or an action of."""
    if not inspect.isroutine(handler):
        hint = f"; write @forge.{kind}(name={handler!r})" if isinstance(handler, str) else ""
        raise InvalidValue(f"@forge.{kind} decorates a function, not {handler!r}{hint}")
    if inspect.isgeneratorfunction(handler) or inspect.isasyncgenfunction(handler):
        name = handler.__name__
        raise InvalidValue(
            f"{name}: a {kind} returns its output and cannot yield it; return a list"
        )


def attributes_of(definition: type) -> list[str]:
    """Return what a definition takes beside its handler."""
    return list(inspect.signature(definition.__init__).parameters)[2:]  # type: ignore[misc]


def check_attributes(kind: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Refuse attributes that a decorator does not have."""
    if unknown := set(given) - set(known):
        raise InvalidValue(
            f"@forge.{kind} has no attribute {min(unknown)!r}; it takes {', '.join(known)}"
        )


def hint_of(handler: Handler, parameter: str, name: str) -> Any:
    """Resolve one annotation; that of the context may name what is imported for checkers only."""
    annotations = getattr(handler, "__annotations__", {})
    if parameter not in annotations:
        return None
    wanted = SimpleNamespace(__annotations__={parameter: annotations[parameter]})
    try:
        hints = get_type_hints(wanted, getattr(handler, "__globals__", {}), include_extras=True)
    except NameError as error:
        raise InvalidValue(
            f"{name}: the type of {parameter!r} cannot be found ({error}); define or import it at "
            "the top level of the module"
        ) from None
    return hints[parameter]


def adapter_of(hint: Any, name: str) -> TypeAdapter[Any] | None:
    """Return what checks values of this type; plain JSON needs no checking beyond being JSON."""
    if hint in (None, type(None), Any, object, dict, dict[str, Any]):
        return None
    try:
        return TypeAdapter(readable(hint))
    except PydanticUserError as error:
        raise InvalidValue(
            f"{name}: values of {hint!r} cannot be checked ({error.message}); use a pydantic "
            "model, a dataclass, a TypedDict or dict"
        ) from None


def misfit(what: str, error: ValidationError) -> InvalidPayload:
    """Say where a value does not fit its type, and never what lies there."""
    found = error.errors(include_url=False, include_input=False)
    faults = [Fault("$" + "".join(map(step_text, f["loc"])), f["msg"]) for f in found]
    lines = "; ".join(f"{fault.path}: {fault.message}" for fault in faults[:MOST_TOLD])
    return InvalidPayload(f"{what} does not fit: {lines}", faults[0].path, faults)
