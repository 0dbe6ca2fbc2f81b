"""`@job` and what it makes: definitions by name."""

import inspect
from collections.abc import Callable, Sequence
from datetime import timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, get_type_hints

from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError

from forge.core.duration import parse_duration
from forge.core.errors import InvalidPayload, InvalidValue, NotRegistered
from forge.core.key import check_idempotent
from forge.core.payload import HARD_LIMIT, decode, encode
from forge.core.retry import Retry, check_max_attempts
from forge.core.typed_dict import readable
from forge.core.wish import Isolation, TypeDefaults, check_name, parse_priority

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from forge.app import Forge
    from forge.core.wish import Options
    from forge.decorator import MakesJobs
    from forge.handle import JobHandle

In = TypeVar("In")
Out = TypeVar("Out")
Handler = Callable[..., Any]
Idempotent = bool | str | Callable[[Any], str]
Kind = Literal["async", "thread", "process"]

CATEGORIES = (
    "ingestion",
    "sync",
    "recurrence",
    "orchestration",
    "documents",
    "notifications",
    "export",
    "maintenance",
)
DEFAULT_ATTEMPTS = 3
CATEGORY_ATTEMPTS = 5


class JobDefinition(Generic[In, Out]):
    """A registered function: call it to run it here, dispatch it to run it in a worker."""

    def __init__(
        self,
        handler: Handler,
        *,
        name: str | None = None,
        timeout: str | timedelta = "1h",
        priority: str | int = "normal",
        max_attempts: int | None = None,
        retry: Retry | None = None,
        worker_capability: str | None = None,
        queue: str = "default",
        idempotent: Idempotent = False,
        category: str | None = None,
        requires: Sequence[str] = (),
        dead_letter: bool = True,
        isolation: Isolation = "none",
    ) -> None:
        self.handler = handler
        self.name = check_name(name or handler.__name__, what="the name of a job")
        self.timeout = parse_duration(timeout, what=f"{self.name}: timeout")
        self._input = f"the input of {self.name}"
        self.timeout_seconds = self.timeout.total_seconds()
        self.retry = retry
        self.dead_letter = dead_letter
        self.kind = _kind(handler, isolation, self.name)
        self.app: Forge | None = None
        self.defaults = TypeDefaults(
            name=self.name,
            queue=check_name(queue, what="queue"),
            priority=parse_priority(priority),
            max_attempts=_attempts(self.name, max_attempts, retry, category),
            worker_capability=_capability(worker_capability),
            category=_category(category),
            requires=tuple(check_name(field, what="requires") for field in requires),
            idempotent=check_idempotent(idempotent),
        )
        self.takes_input, self.input_type, self.output_type = _signature(handler, self.name)
        self.input_adapter = _adapter(self.input_type, self.name)
        self.output_adapter = _adapter(self.output_type, self.name)
        self.__doc__ = handler.__doc__
        self.__name__ = getattr(handler, "__name__", self.name)
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
        if self.input_adapter is None:
            return encode({} if value is None else value, what=self._input, limit=limit)
        try:
            checked = self.input_adapter.validate_python({} if value is None else value)
        except ValidationError as error:
            raise _invalid(self.name, error) from None
        return encode(
            self.input_adapter.dump_python(checked, mode="json"),
            what=self._input,
            limit=limit,
        )

    def decode(self, text: str) -> Any:
        """Read a stored input as the handler wants it."""
        if self.input_adapter is None:
            return decode(text)
        try:
            return self.input_adapter.validate_json(text)
        except ValidationError as error:
            raise _invalid(self.name, error) from None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.handler(*args, **kwargs)

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
    if unknown := attributes.keys() - _ATTRIBUTES:
        allowed = ", ".join(sorted(_ATTRIBUTES))
        raise InvalidValue(f"@forge.job has no attribute {min(unknown)!r}; it takes {allowed}")
    return lambda handler: JobDefinition(handler, **attributes)


job: "MakesJobs" = _job

_ATTRIBUTES = set(inspect.signature(JobDefinition.__init__).parameters) - {"self", "handler"}


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


def _kind(handler: Handler, isolation: str, name: str) -> Kind:
    if not callable(handler):
        raise InvalidValue(f"@forge.job decorates a function, not {handler!r}")
    if isolation not in ("none", "process"):
        raise InvalidValue(f'{name}: isolation must be "none" or "process", not {isolation!r}')
    if isolation == "process":
        return "process"
    return "async" if inspect.iscoroutinefunction(handler) else "thread"


def _capability(value: str | None) -> str | None:
    return None if value is None else check_name(value, what="worker_capability")


def _category(value: str | None) -> str | None:
    if value is not None and value not in CATEGORIES:
        raise InvalidValue(f"category must be one of {', '.join(CATEGORIES)}, not {value!r}")
    return value


def _signature(handler: Handler, name: str) -> tuple[bool, Any, Any]:
    parameters = list(inspect.signature(handler).parameters.values())
    if not 1 <= len(parameters) <= 2:
        raise InvalidValue(
            f"{name}: a job takes (ctx, input) or (ctx), not {len(parameters)} arguments"
        )
    takes_input = len(parameters) == 2
    input_type = _hint(handler, parameters[1].name, name) if takes_input else None
    return takes_input, input_type, _hint(handler, "return", name)


def _hint(handler: Handler, parameter: str, name: str) -> Any:
    """Resolve one annotation; that of the context may name what is imported for checkers only."""
    annotations = getattr(handler, "__annotations__", {})
    if parameter not in annotations:
        return None
    wanted = SimpleNamespace(__annotations__={parameter: annotations[parameter]})
    try:
        return get_type_hints(wanted, getattr(handler, "__globals__", {}))[parameter]
    except NameError as error:
        raise InvalidValue(
            f"{name}: the type of {parameter!r} cannot be found ({error}); define or import it at "
            "the top level of the module"
        ) from None


def _adapter(hint: Any, name: str) -> TypeAdapter[Any] | None:
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


def _invalid(name: str, error: ValidationError) -> InvalidPayload:
    faults = error.errors(include_url=False, include_input=False)
    lines = "; ".join(f"{_path(fault['loc'])}: {fault['msg']}" for fault in faults)
    return InvalidPayload(f"the input of {name} does not fit: {lines}", _path(faults[0]["loc"]))


def _path(steps: tuple[int | str, ...]) -> str:
    return "$" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
