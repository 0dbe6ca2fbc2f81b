"""The signature of a handler: its input and output types, from the annotations."""

import inspect
import re
import sys
import types
import typing
from collections.abc import Callable, Iterable
from inspect import Parameter
from types import SimpleNamespace, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import typing_extensions
from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticUserError

from forge.core.context import Context
from forge.core.equivalents import ATTRIBUTES
from forge.core.errors import Fault, InvalidPayload, InvalidValue, UndecodablePayload
from forge.core.payload import encode, step_text
from forge.core.suggestion import suggestion


def readable(hint: Any) -> Any:
    """Return the same type with every TypedDict replaced by one that pydantic accepts.

    Before Python 3.12 pydantic rejects those of `typing`.
    """
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
        name: typing_extensions.Required[readable(inner)]
        if name in hint.__required_keys__
        else typing_extensions.NotRequired[readable(inner)]
        for name, inner in get_type_hints(hint).items()
    }
    rebuilt = typing_extensions.TypedDict(hint.__name__, fields)  # type: ignore[misc]
    rebuilt.__module__, rebuilt.__doc__ = hint.__module__, hint.__doc__
    return rebuilt


Handler = Callable[..., Any]
# Faults in the message of an error; its `faults` has all of them.
MAX_LISTED = 20
# Accepted names of a context without annotation: ctx, job_context, c; _ if it is not used.
CONTEXT_NAME = re.compile(r"_.*|c|.*(ctx|context).*", re.IGNORECASE)
BY_PLACE = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)


def check_function(handler: object, kind: str) -> None:
    """Reject what cannot be a handler: not a function, or a generator."""
    if not inspect.isroutine(handler):
        hint = f"; write @forge.{kind}(name={handler!r})" if isinstance(handler, str) else ""
        raise InvalidValue(f"@forge.{kind} decorates a function, not {handler!r}{hint}")
    if inspect.isgeneratorfunction(handler) or inspect.isasyncgenfunction(handler):
        name = handler.__name__
        raise InvalidValue(
            f"{name}: a {kind} returns its output and cannot yield it; return a list"
        )


def attributes_of(definition: type) -> list[str]:
    """Return the names of the attributes that a definition takes."""
    return list(inspect.signature(definition.__init__).parameters)[2:]  # type: ignore[misc]


def check_attributes(kind: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Reject attributes that a decorator does not have."""
    if unknown := set(given) - set(known):
        hint = ATTRIBUTES.get(min(unknown)) or suggestion(min(unknown), known, "it")
        raise InvalidValue(f"@forge.{kind} has no attribute {min(unknown)!r}; {hint}")


def check_context(handler: Handler, first: Parameter, name: str, kind: str) -> None:
    """Reject a handler whose first parameter is not the context."""
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
    given = origin or hint
    if given in (Any, object):
        return True
    # A protocol may describe the part of the context that the handler uses.
    is_class = isinstance(given, type)
    return is_class and (issubclass(given, Context) or getattr(given, "_is_protocol", False))


def hint_of(handler: Handler, parameter: str, name: str) -> Any:
    """Resolve one annotation alone: another may need a name imported for type checkers only."""
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
    """Return the pydantic adapter of a type; None for plain JSON, which needs no validation."""
    if hint in (None, type(None), Any, object, dict, dict[str, Any]):
        return None
    try:
        return TypeAdapter(readable(hint))
    except PydanticUserError as error:
        raise InvalidValue(
            f"{name}: values of {hint!r} cannot be checked ({error.message}); use a pydantic "
            "model, a dataclass, a TypedDict or dict"
        ) from None
    except RecursionError:  # `readable` cannot replace a TypedDict that contains itself
        raise InvalidValue(
            f"{name}: {hint!r} contains itself, which Python before 3.12 supports only for "
            "TypedDict of typing_extensions; import it from there"
        ) from None


def schema_of(
    adapter: TypeAdapter[Any] | None, mode: Literal["validation", "serialization"]
) -> str | None:
    """Return the JSON Schema of a type as text; None where JSON Schema cannot describe it."""
    if adapter is None:
        return None
    try:
        return encode(adapter.json_schema(mode=mode), what="a schema")
    except (PydanticInvalidForJsonSchema, PydanticUserError):
        return None


def misfit(what: str, error: ValidationError, *, hint: str = "") -> InvalidPayload:
    """Return an error with the paths of what does not fit the type, and never the values."""
    found = error.errors(include_url=False, include_input=False)
    faults = [Fault("$" + "".join(map(step_text, f["loc"])), f["msg"]) for f in found]
    lines = "; ".join(f"{fault.path}: {fault.message}" for fault in faults[:MAX_LISTED])
    return InvalidPayload(f"{what} does not fit: {lines}{hint}", faults[0].path, faults)


def as_stored(error: InvalidPayload) -> UndecodablePayload:
    """Return the same error for a stored value, which no retry can correct."""
    return UndecodablePayload(str(error), error.path, error.faults)
