"""`@schedule` and `@cron`, and the definition they make: the handler of a schedule type."""

from collections.abc import Callable, Coroutine
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, TypedDict, TypeVar, overload

from forge.core.errors import InvalidValue
from forge.core.job import PriorityLike
from forge.core.job_type import Isolation
from forge.core.retry import Retry
from forge.core.schedules.rule import Missed, make_rule
from forge.core.schedules.run import write_next
from forge.definitions.job import JobDefinition
from forge.definitions.signature import Handler, check_attributes

if TYPE_CHECKING:
    from typing_extensions import Unpack

In = TypeVar("In")
Next = datetime | timedelta | None


class RunAttributes(TypedDict, total=False):
    """The attributes that schedules share with jobs."""

    timeout: str | timedelta
    priority: PriorityLike
    worker_capability: str | None
    retry: Retry | None
    isolation: Isolation


class ScheduleAttributes(RunAttributes, total=False):
    """The attributes that `@schedule` and `@cron` share."""

    missed: Missed
    jitter: str | timedelta | None


class ScheduleDefinition(JobDefinition[In, Next]):
    """A function that runs by the rule of each schedule of its type."""

    def __init__(
        self,
        handler: Handler,
        *,
        type: str | None = None,
        every: str | timedelta | None = None,
        cron: str | None = None,
        tz: str | None = None,
        missed: Missed = "once",
        jitter: str | timedelta | None = None,
        **attributes: "Unpack[RunAttributes]",
    ) -> None:
        super().__init__(handler, name=type, **attributes)
        _check_retry(self._attributes.retry, self.name)
        self.rule = make_rule(self.name, every, cron, tz, missed, jitter)

    @property
    def plants_itself(self) -> bool:
        """Whether workers create its row when they start."""
        return self.rule.cron is not None

    def encode_output(self, value: Any, *, limit: int) -> str | None:
        """Encode when the handler wants to run next."""
        return write_next(value)

    async def dispatch(self, *args: Any, **options: Any) -> NoReturn:
        """Raise: a schedule runs by its own row."""
        raise self.not_a_job()

    def not_a_job(self) -> InvalidValue:
        return InvalidValue(
            f"{self.name} is a schedule, not a job; call app.schedules.run_now({self.name!r}), or "
            "make a job of what both should do"
        )

    def __repr__(self) -> str:
        return f"<forge.{'cron' if self.plants_itself else 'schedule'} {self.name}>"


def _check_retry(retry: Retry | None, name: str) -> None:
    if retry is not None and retry.max_attempts is not None:
        raise InvalidValue(
            f"{name}: a schedule is tried until it succeeds or its next tick comes; leave "
            "max_attempts out of Retry(…)"
        )


class ScheduleDecorator(Protocol):
    """A decorator that makes a function the handler of a schedule type."""

    @overload
    def __call__(
        self, handler: Callable[[Any, In], Coroutine[Any, Any, Next]], /
    ) -> ScheduleDefinition[In]: ...
    @overload
    def __call__(
        self, handler: Callable[[Any], Coroutine[Any, Any, Next]], /
    ) -> ScheduleDefinition[None]: ...
    @overload
    def __call__(self, handler: Callable[[Any, In], Next], /) -> ScheduleDefinition[In]: ...
    @overload
    def __call__(self, handler: Callable[[Any], Next], /) -> ScheduleDefinition[None]: ...


def schedule(
    type: str,
    /,
    *,
    every: str | timedelta | None = None,
    **attributes: "Unpack[ScheduleAttributes]",
) -> ScheduleDecorator:
    """Make a function the handler of a schedule type; it returns when to run next.

    >>> @schedule("fetch_feed", every="1h")
    ... async def fetch_feed(ctx, payload: dict) -> None:
    ...     print("fetching", payload["feed_id"])
    >>> fetch_feed
    <forge.schedule fetch_feed>
    """
    check_attributes("schedule", attributes, ["every", *ScheduleAttributes.__annotations__])
    if not isinstance(type, str):
        raise InvalidValue('write @forge.schedule("fetch_feed"), with the type of the schedules')
    return lambda handler: ScheduleDefinition(handler, type=type, every=every, **attributes)


def cron(
    expression: str,
    /,
    *,
    tz: str = "UTC",
    type: str | None = None,
    **attributes: "Unpack[ScheduleAttributes]",
) -> ScheduleDecorator:
    """Make a function run at the times of a cron expression.

    Workers create its schedule when they start.

    >>> @cron("0 3 * * *", tz="Europe/Paris")
    ... async def clean_up(ctx) -> None:
    ...     print("cleaning up")
    >>> clean_up
    <forge.cron clean_up>
    """
    check_attributes("cron", attributes, ["tz", "type", *ScheduleAttributes.__annotations__])
    return lambda handler: ScheduleDefinition(
        handler, cron=expression, tz=tz, type=type, **attributes
    )
