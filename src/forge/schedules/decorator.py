"""`@schedule` and `@cron`."""

from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, overload

from forge.core.errors import InvalidValue
from forge.schedules.definition import Next, ScheduleAttributes, ScheduleDefinition
from forge.signature import check_attributes

if TYPE_CHECKING:
    from typing_extensions import Unpack

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
    **attributes: "Unpack[ScheduleAttributes]",
) -> Decorates:
    """Make a function the handler of all schedules of a type; it returns when to run next.

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
) -> Decorates:
    """Make a function run by the clock: workers make its one schedule when they start.

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
