"""`@schedule` and `@cron`."""

from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any, Protocol, TypeVar, overload

from forge.core.errors import InvalidValue
from forge.core.retry import Retry
from forge.core.wish import Isolation
from forge.schedules.definition import Next, ScheduleDefinition
from forge.signature import Handler

In = TypeVar("In")


class Decorates(Protocol):
    """Makes a function the handler of a type of schedules."""

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
    missed: str = "once",
    jitter: str | timedelta | None = None,
    timeout: str | timedelta = "1h",
    priority: str | int = "normal",
    worker_capability: str | None = None,
    retry: Retry | None = None,
    isolation: Isolation = "none",
) -> Decorates:
    """Make a function the handler of all schedules of a type; it returns when to run next.

    >>> @schedule("fetch_feed", every="1h")
    ... async def fetch_feed(ctx, payload: dict) -> None:
    ...     print("fetching", payload["feed_id"])
    >>> fetch_feed
    <forge.schedule fetch_feed>
    """
    if not isinstance(type, str):
        raise InvalidValue('write @forge.schedule("fetch_feed"), with the type of the schedules')
    return _making(
        type=type,
        every=every,
        missed=missed,
        jitter=jitter,
        timeout=timeout,
        priority=priority,
        worker_capability=worker_capability,
        retry=retry,
        isolation=isolation,
    )


def cron(
    expression: str,
    /,
    *,
    tz: str = "UTC",
    type: str | None = None,
    missed: str = "once",
    jitter: str | timedelta | None = None,
    timeout: str | timedelta = "1h",
    priority: str | int = "normal",
    worker_capability: str | None = None,
    retry: Retry | None = None,
    isolation: Isolation = "none",
) -> Decorates:
    """Make a function run by the clock: workers make its one schedule when they start.

    >>> @cron("0 3 * * *", tz="Europe/Paris")
    ... async def clean_up(ctx) -> None:
    ...     print("cleaning up")
    >>> clean_up
    <forge.cron clean_up>
    """
    return _making(
        cron=expression,
        tz=tz,
        type=type,
        missed=missed,
        jitter=jitter,
        timeout=timeout,
        priority=priority,
        worker_capability=worker_capability,
        retry=retry,
        isolation=isolation,
    )


def _making(**attributes: Any) -> Decorates:
    def make(handler: Handler) -> ScheduleDefinition[Any]:
        return ScheduleDefinition(handler, **attributes)

    return make
