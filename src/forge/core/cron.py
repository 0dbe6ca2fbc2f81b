"""Cron expressions: which moments they name, in which time zone, clock changes included."""

from collections.abc import Iterator
from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from forge.core.errors import InvalidValue

ALLOWED = (
    'write five fields (minute, hour, day, month, weekday) such as "0 3 * * *", or six with the '
    "seconds first"
)
# Whether an expression can be read does not depend on the day.
SOME_DAY = datetime(2024, 1, 1, tzinfo=UTC)


def check_cron(expression: object, tz: str = "UTC") -> str:
    """Refuse what is not a cron expression, or names no moment that ever comes."""
    if not isinstance(expression, str):
        raise InvalidValue(f"cron must be text, not {expression!r}; {ALLOWED}")
    next_after(expression, tz, SOME_DAY)
    return " ".join(expression.split())


def next_after(expression: str, tz: str, moment: datetime) -> datetime:
    """Return the first tick after a moment, in UTC.

    >>> next_after("0 3 * * *", "Europe/Paris", datetime(2026, 7, 1, 12, tzinfo=UTC)).isoformat()
    '2026-07-02T01:00:00+00:00'
    """
    return next(ticks_after(expression, tz, moment))


def ticks_after(expression: str, tz: str, moment: datetime) -> Iterator[datetime]:
    """Yield the ticks after a moment, each later than the one before.

    A time of day that the clocks skip comes when they have skipped it; one that they show twice
    comes the first time only. What is counted in hours or less goes on through both.
    """
    last = moment
    try:
        ticks = CronSim(expression, moment.astimezone(zone(tz)))
    except CronSimError as error:
        raise InvalidValue(
            f"{expression!r} is not a cron expression ({error}); {ALLOWED}"
        ) from None
    while True:
        try:
            tick = next(ticks).astimezone(UTC)
        except StopIteration:
            raise InvalidValue(
                f"{expression!r} names no moment that ever comes; correct its day and month"
            ) from None
        # In the hour that the clocks show twice, a time of day lies before the second showing.
        if tick > last:
            yield tick
            last = tick


@lru_cache(maxsize=1000)
def zone(name: str) -> tzinfo:
    """Find a time zone by its name, or say what is allowed."""
    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, TypeError, OSError):
        raise InvalidValue(
            f"there is no time zone {name!r}; write a name such as Europe/Paris, and install the "
            "tzdata package where the system has no time zones"
        ) from None
