"""`@job` and what it makes: definitions by name."""

import inspect
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

import typing_extensions
from pydantic import ValidationError

from forge.core.duration import parse_duration
from forge.core.errors import InvalidPayload, InvalidValue, NotRegistered
from forge.core.job import PriorityLike
from forge.core.key import check_idempotent
from forge.core.payload import HARD_LIMIT, decode, encode
from forge.core.retry import Retry, check_max_attempts
from forge.core.rules import ENVELOPE, VERSION, Category, check_category
from forge.core.sensitive import check_allowed
from forge.core.wish import Isolation, TypeDefaults, check_name, parse_priority
from forge.signature import (
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
)

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from forge.app import Forge
    from forge.core.wish import Options
    from forge.decorator import MakesJobs
    from forge.handle import JobHandle

In = TypeVar("In")
Out = TypeVar("Out")
# What a call of the handler gives: its output, or a coroutine of it.
Returned = typing_extensions.TypeVar("Returned", default=Any)
Idempotent = bool | str | Callable[[Any], str]
Kind = Literal["async", "thread", "process"]

DEFAULT_ATTEMPTS = 3
CATEGORY_ATTEMPTS = 5


class JobDefinition(Generic[In, Out, Returned]):
    """A registered function: call it to run it here, dispatch it to run it in a worker."""

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
        self.timeout = parse_duration(timeout, what=f"{self.name}: timeout")
        self._input = f"the input of {self.name}"
        self.timeout_seconds = self.timeout.total_seconds()
        self.retry = _check_retry(retry, self.name)
        self.dead_letter = _check_flag(dead_letter, f"{self.name}: dead_letter")
        self.kind = _kind(handler, isolation, self.name)
        self.app: Forge | None = None
        self.defaults = TypeDefaults(
            name=self.name,
            queue=check_name(queue, what="queue"),
            priority=parse_priority(priority),
            max_attempts=_attempts(self.name, max_attempts, self.retry, category),
            worker_capability=_capability(worker_capability),
            category=check_category(category),
            requires=_references(requires, self.name),
            idempotent=check_idempotent(idempotent),
            allow_sensitive=check_allowed(allow_sensitive, self.name),
        )
        self.takes_input, self.input_type, self.output_type = _signature(handler, self.name)
        self.input_adapter = adapter_of(self.input_type, self.name)
        self._takes_dict = self.input_type in (dict, dict[str, Any])
        self.output_adapter = adapter_of(self.output_type, self.name)
        self.__doc__ = handler.__doc__
        self.__name__ = handler.__name__
        self.__module__ = handler.__module__
        self.__qualname__ = handler.__qualname__

    async def dispatch(
        self,
        input: In | dict[str, Any] | None = None,
        *,
        conn: Any = None,
        notify: bool = False,
        **options: "Unpack[Options]",
    ) -> "JobHandle":
        """Ask for one call of this job, in the caller's transaction where `conn` is given."""
        if self.app is None:
            raise NotRegistered(
                f"{self.name} belongs to no app yet; call app.register({self.__name__}) first"
            )
        return await self.app.dispatch(self, input, conn=conn, notify=notify, **options)

    def encode(self, value: Any, *, limit: int = HARD_LIMIT) -> str:
        """Check an input against the handler's own type and write it as JSON."""
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
            return self.encode({k: v for k, v in value.items() if k not in foreign}, limit=limit)
        return encode(
            self.input_adapter.dump_python(checked, mode="json", by_alias=True),
            what=self._input,
            limit=limit,
        )

    def decode(self, text: str) -> Any:
        """Read a stored input as the handler wants it."""
        if self.input_adapter is None:
            plain = decode(text)
            if self._takes_dict and text[0] != "{":
                raise as_stored(self._no_dict())
            return plain
        try:
            return self.input_adapter.validate_json(text)
        except ValidationError as error:
            plain = decode(text)  # what cannot be read at all is no misfit
            if not (foreign := self._foreign(error)):
                raise as_stored(misfit(self._input, error)) from None
            return self.decode(encode({k: v for k, v in plain.items() if k not in foreign}))

    def _no_dict(self) -> InvalidPayload:
        return InvalidPayload(f"{self._input} must be a dict; write {{'name': …}}")

    def _foreign(self, error: ValidationError) -> set[str]:
        """Return what a category puts into each payload and the type of the input forbids."""
        if self.defaults.category is None:
            return set()
        faults = error.errors(include_url=False, include_input=False)
        places = [fault["loc"] for fault in faults if fault["type"] in _FORBIDDEN]
        return {str(place[0]) for place in places if len(place) == 1} & {*ENVELOPE, VERSION}

    def write_output(self, value: Any, *, limit: int) -> str | None:
        """Write what the handler returned as JSON."""
        return None if value is None else encode(value, what="the output", limit=limit)

    def __call__(self, *args: Any, **kwargs: Any) -> Returned:
        returned: Returned = self.handler(*args, **kwargs)
        return returned

    def __repr__(self) -> str:
        return f"<forge.job {self.name}>"


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
    # Text is a sequence too, of its letters.
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise InvalidValue(f"{name}: requires must be a list; write [{value!r}]")
    return tuple(check_name(field, what="requires") for field in value)


def _kind(handler: Handler, isolation: str, name: str) -> Kind:
    if isolation not in ("none", "process"):
        raise InvalidValue(f'{name}: isolation must be "none" or "process", not {isolation!r}')
    if isolation == "process":
        return "process"
    return "async" if inspect.iscoroutinefunction(handler) else "thread"


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
