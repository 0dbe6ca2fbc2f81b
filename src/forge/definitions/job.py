"""`@job`, and the definition it makes: the handler of a job type and its adapters."""

import inspect
from collections.abc import Callable, Coroutine, Iterable, Sequence
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeVar, overload

import typing_extensions
from pydantic import ValidationError
from pydantic_core import to_json

from forge.core.duration import parse_duration
from forge.core.equivalents import OF_A_JOB, raise_equivalent
from forge.core.errors import InvalidPayload, InvalidValue, NotRegistered
from forge.core.idempotency import check_idempotent
from forge.core.job import PriorityLike
from forge.core.job_type import Isolation, JobType
from forge.core.new_job import check_name, parse_priority
from forge.core.payload import HARD_LIMIT, decode, encode
from forge.core.payload_rules import ENVELOPE, VERSION, Category, check_category
from forge.core.retry import Retry, check_max_attempts
from forge.core.sensitive.findings import check_allowed
from forge.definitions.signature import (
    BY_PLACE,
    Handler,
    adapter_of,
    as_stored,
    attributes_of,
    check_attributes,
    check_context,
    check_function,
    hint_of,
    misfit,
    schema_of,
)

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from forge.core.new_job import DispatchOptions
    from forge.jobs.handle import JobHandle

In = TypeVar("In")
Out = TypeVar("Out")
# What a call of the handler returns: its output, or a coroutine.
Returned = typing_extensions.TypeVar("Returned", default=Any)
Idempotent = bool | str | Callable[[Any], str]
HandlerKind = Literal["async", "thread", "process"]

DEFAULT_ATTEMPTS = 3
CATEGORY_ATTEMPTS = 5


class DispatchesJobs(Protocol):
    """What a job definition needs of its app."""

    async def dispatch(
        self,
        job: "JobDefinition[In, Any]",
        input: In | dict[str, Any] | None = None,
        *,
        conn: Any = None,
        notify: bool = False,
        **options: "Unpack[DispatchOptions]",
    ) -> "JobHandle": ...


class JobDefinition(Generic[In, Out, Returned]):
    """The handler of a job type: call it to run it here, dispatch it to run it in a worker."""

    def __init__(
        self,
        handler: Handler,
        *,
        name: str | None = None,
        timeout: str | timedelta = "1h",
        priority: PriorityLike = "normal",
        max_attempts: int | None = None,
        retry: Retry | None = None,
        worker_capability: str | None = None,
        queue: str = "default",
        idempotent: Idempotent = False,
        category: Category | None = None,
        requires: Sequence[str] | None = None,
        allow_sensitive: Sequence[str] = (),
        dead_letter: bool = True,
        isolation: Isolation = "none",
    ) -> None:
        check_function(handler, "job")
        self.handler = handler
        given = handler.__name__ if name is None else name
        self.name = check_name(given, what="the name of a job")
        self._input = f"the input of {self.name}"
        duration = parse_duration(timeout, what=f"{self.name}: timeout")
        self.timeout_seconds = duration.total_seconds()
        policy = _check_retry(retry, self.name)
        self.handler_kind = _handler_kind(handler, isolation, self.name)
        self.app: DispatchesJobs | None = None
        self._attributes = JobType(
            name=self.name,
            queue=check_name(queue, what="queue"),
            priority=parse_priority(priority),
            max_attempts=_attempts(self.name, max_attempts, policy, category),
            timeout=duration,
            worker_capability=_capability(worker_capability),
            category=check_category(category),
            requires=_references(requires, self.name),
            allow_sensitive=check_allowed(allow_sensitive, self.name),
            idempotent=check_idempotent(idempotent),
            dead_letter=_check_flag(dead_letter, f"{self.name}: dead_letter"),
            isolation=isolation,
            retry=policy,
            description=_description(handler),
        )
        self.takes_input, self.input_type, self.output_type = _signature(handler, self.name)
        self.input_adapter = adapter_of(self.input_type, self.name)
        self._takes_dict = self.input_type in (dict, dict[str, Any])
        self.output_adapter = adapter_of(self.output_type, self.name)
        self.__doc__ = handler.__doc__
        self.__name__ = handler.__name__
        self.__module__ = handler.__module__
        self.__qualname__ = handler.__qualname__

    @cached_property
    def job_type(self) -> JobType:
        """Its attributes and schemas, as other processes know them.

        The schemas are made at the first use: a model may refer to a class defined after the job.
        """
        return self._attributes._replace(
            input_schema=schema_of(self.input_adapter, "validation"),
            output_schema=schema_of(self.output_adapter, "serialization"),
        )

    async def dispatch(
        self,
        input: In | dict[str, Any] | None = None,
        *,
        conn: Any = None,
        notify: bool = False,
        **options: "Unpack[DispatchOptions]",
    ) -> "JobHandle[Out]":
        """Dispatch one job of this type; with `conn`, in the transaction of that connection."""
        if self.app is None:
            raise NotRegistered(
                f"{self.name} belongs to no app yet; call app.register({self.__name__}) first"
            )
        return await self.app.dispatch(self, input, conn=conn, notify=notify, **options)

    def encode_input(self, value: Any, *, limit: int = HARD_LIMIT) -> str:
        """Validate an input against the handler's annotation and encode it as JSON."""
        value = {} if value is None else value
        if self.input_adapter is None:
            text = encode(value, what=self._input, limit=limit)
            if self._takes_dict and text[0] != "{":
                raise self._no_dict()
            return text
        try:
            checked = self.input_adapter.validate_python(value)
        except ValidationError as error:
            if not (foreign := self._foreign(error)) or not isinstance(value, dict):
                raise misfit(self._input, error) from None
            own = {k: v for k, v in value.items() if k not in foreign}
            return self.encode_input(own, limit=limit)
        return encode(
            self.input_adapter.dump_python(checked, mode="json", by_alias=True),
            what=self._input,
            limit=limit,
        )

    def decode_input(self, text: str) -> Any:
        """Decode a stored input as the handler's annotation says."""
        if self.input_adapter is None:
            plain = decode(text)
            if self._takes_dict and text[0] != "{":
                raise as_stored(self._no_dict())
            return plain
        try:
            return self.input_adapter.validate_json(text)
        except ValidationError as error:
            plain = decode(text)  # raises for text that is not JSON at all
            if not (foreign := self._foreign(error)):
                raise as_stored(misfit(self._input, error)) from None
            return self.decode_input(encode({k: v for k, v in plain.items() if k not in foreign}))

    def _no_dict(self) -> InvalidPayload:
        return InvalidPayload(f"{self._input} must be a dict; write {{'name': …}}")

    def _foreign(self, error: ValidationError) -> set[str]:
        """Return the envelope fields of its category that the input's type forbids."""
        if self._attributes.category is None:
            return set()
        faults = error.errors(include_url=False, include_input=False)
        places = [fault["loc"] for fault in faults if fault["type"] in _FORBIDDEN]
        return {str(place[0]) for place in places if len(place) == 1} & {*ENVELOPE, VERSION}

    def encode_output(self, value: Any, *, limit: int) -> str | None:
        """Encode as JSON what the handler returned."""
        return None if value is None else encode(value, what="the output", limit=limit)

    def decode_output(self, value: Any, *, what: str) -> Out:
        """Turn a stored output, read as plain JSON, into what the handler's annotation says."""
        if self.output_adapter is None:
            output: Out = value
            return output
        try:
            # As JSON, not as Python values: strict models take a datetime from JSON text only.
            output = self.output_adapter.validate_json(to_json(value))
        except ValidationError as error:
            fault = misfit(what, error, hint="; handle.get() returns it as stored")
            raise as_stored(fault) from None
        return output

    def __call__(self, *args: Any, **kwargs: Any) -> Returned:
        returned: Returned = self.handler(*args, **kwargs)
        return returned

    def __repr__(self) -> str:
        return f"<forge.job {self.name}>"

    if not TYPE_CHECKING:  # type checkers would accept every attribute

        def __getattr__(self, name: str) -> Any:
            raise_equivalent(self.__dict__.get("name", "a job"), name, OF_A_JOB)
            return object.__getattribute__(self, name)  # raises the original error


def _job(handler: Handler | None = None, /, **attributes: Any) -> Any:
    """Make a function a job.

    >>> @job(timeout="30m", priority="high")
    ... async def export_users(ctx, input: dict) -> dict:
    ...     return {"count": 3}
    >>> export_users
    <forge.job export_users>
    """
    if handler is not None:
        return JobDefinition(handler)
    check_attributes("job", attributes, _ATTRIBUTES)
    return lambda handler: JobDefinition(handler, **attributes)


job: "MakesJobs" = _job

_FORBIDDEN = {"extra_forbidden", "unexpected_keyword_argument"}
_ATTRIBUTES = attributes_of(JobDefinition)


def _attempts(
    name: str, max_attempts: int | None, retry: Retry | None, category: str | None
) -> int:
    if max_attempts is not None and retry is not None and retry.max_attempts is not None:
        raise InvalidValue(
            f"{name}: max_attempts is given twice; leave it either in @forge.job or in Retry(...)"
        )
    given = max_attempts if max_attempts is not None else retry.max_attempts if retry else None
    if given is not None:
        return check_max_attempts(given)
    return CATEGORY_ATTEMPTS if category else DEFAULT_ATTEMPTS


def _check_retry(value: Retry | None, name: str) -> Retry | None:
    if value is None or isinstance(value, Retry):
        return value
    raise InvalidValue(
        f"{name}: retry must be a Retry, such as Retry(max_attempts=5), not {value!r}"
    )


def _check_flag(value: bool, what: str) -> bool:
    if isinstance(value, bool):
        return value
    raise InvalidValue(f"{what} must be True or False, not {value!r}")


def _references(value: Sequence[str] | None, name: str) -> tuple[str, ...] | None:
    if value is None:
        return None
    # A string is a sequence too, of its characters.
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise InvalidValue(f"{name}: requires must be a list; write [{value!r}]")
    return tuple(check_name(field, what="requires") for field in value)


def _handler_kind(handler: Handler, isolation: str, name: str) -> HandlerKind:
    if isolation not in ("none", "process"):
        raise InvalidValue(f'{name}: isolation must be "none" or "process", not {isolation!r}')
    if isolation == "process":
        return "process"
    return "async" if inspect.iscoroutinefunction(handler) else "thread"


def _description(handler: Handler) -> str | None:
    """Return the docstring, without what PostgreSQL cannot store."""
    doc = inspect.cleandoc(handler.__doc__ or "").replace("\0", "\N{REPLACEMENT CHARACTER}")
    return doc.encode(errors="replace").decode() or None


def _capability(value: str | None) -> str | None:
    return None if value is None else check_name(value, what="worker_capability")


def _signature(handler: Handler, name: str) -> tuple[bool, Any, Any]:
    signature = inspect.signature(handler)
    parameters = list(signature.parameters.values())
    is_called_so = all(parameter.kind in BY_PLACE for parameter in parameters)
    if not (is_called_so and 1 <= len(parameters) <= 2):
        raise InvalidValue(f"{name}: a job takes (ctx, input) or (ctx), not {signature}")
    check_context(handler, parameters[0], name, "job")
    takes_input = len(parameters) == 2
    input_type = hint_of(handler, parameters[1].name, name) if takes_input else None
    return takes_input, input_type, hint_of(handler, "return", name)


class MakesJobs(Protocol):
    """`forge.job` and `app.job`: a decorator, with or without attributes."""

    @overload
    def __call__(
        self, handler: Callable[[Any, In], Coroutine[Any, Any, Out]], /
    ) -> JobDefinition[In, Out, Coroutine[Any, Any, Out]]: ...
    @overload
    def __call__(
        self, handler: Callable[[Any], Coroutine[Any, Any, Out]], /
    ) -> JobDefinition[None, Out, Coroutine[Any, Any, Out]]: ...
    @overload
    def __call__(self, handler: Callable[[Any, In], Out], /) -> JobDefinition[In, Out, Out]: ...
    @overload
    def __call__(self, handler: Callable[[Any], Out], /) -> JobDefinition[None, Out, Out]: ...
    @overload
    def __call__(
        self,
        *,
        name: str | None = None,
        timeout: str | timedelta = "1h",
        priority: PriorityLike = "normal",
        max_attempts: int | None = None,
        retry: Retry | None = None,
        worker_capability: str | None = None,
        queue: str = "default",
        idempotent: Idempotent = False,
        category: Category | None = None,
        requires: Sequence[str] | None = None,
        allow_sensitive: Sequence[str] = (),
        dead_letter: bool = True,
        isolation: Isolation = "none",
    ) -> "MakesJobs": ...
