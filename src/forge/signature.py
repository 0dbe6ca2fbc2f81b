"""What a handler takes and gives, read from its annotations."""

import inspect
import re
from collections.abc import Callable, Iterable
from inspect import Parameter
from types import SimpleNamespace, UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError

from forge.core.context import Context
from forge.core.errors import Fault, InvalidPayload, InvalidValue, UndecodablePayload
from forge.core.path import step_text
from forge.core.suggestion import suggestion
from forge.core.typed_dict import readable

Handler = Callable[..., Any]
# So many faults stand in the message of an error, which has them all.
MOST_TOLD = 20
# How a context without a type may be named: ctx, job_context, c, or with a _ where it is not used.
CONTEXT_NAME = re.compile(r"_.*|c|.*(ctx|context).*", re.IGNORECASE)
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
        hint = suggestion(min(unknown), known, "it")
        raise InvalidValue(f"@forge.{kind} has no attribute {min(unknown)!r}; {hint}")


def check_context(handler: Handler, first: Parameter, name: str, kind: str) -> None:
    """Refuse a handler whose first parameter is not the context: it would get one as its input."""
    named = CONTEXT_NAME.fullmatch(first.name) is not None
    annotation = first.annotation
    if annotation is not Parameter.empty:
        try:
            annotation = hint_of(handler, first.name, name)
        except InvalidValue:  # imported for type checkers only
            named = named or "Context" in str(annotation)
        else:
            named = _is_context(annotation)
    if not named:
        raise InvalidValue(
            f"{name}: the first parameter of a {kind} is its context, not {str(first)!r}; write "
            f"{name}(ctx: {kind.capitalize()}Context, …)"
        )


def _is_context(hint: Any) -> bool:
    if isinstance(hint, TypeVar):
        hint = Any if hint.__bound__ is None else hint.__bound__
    origin = get_origin(hint)
    if origin is Annotated:
        return _is_context(get_args(hint)[0])
    if origin in (Union, UnionType):
        return any(_is_context(each) for each in get_args(hint) if each is not type(None))
    kind = origin or hint
    if kind in (Any, object):
        return True
    # A protocol may describe what is used of the context.
    is_class = isinstance(kind, type)
    return is_class and (issubclass(kind, Context) or getattr(kind, "_is_protocol", False))


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


def as_stored(error: InvalidPayload) -> UndecodablePayload:
    """Return the same fault of a value that is stored, which no other attempt can correct."""
    return UndecodablePayload(str(error), error.path, error.faults)
