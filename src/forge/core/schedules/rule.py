"""When a schedule runs: its rule, the ticks of the rule, and which ticks are skipped."""

import hashlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from itertools import chain, islice
from typing import Literal, get_args
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from forge.core.duration import parse_duration
from forge.core.errors import InvalidValue

ALLOWED = (
    'write five fields (minute, hour, day, month, weekday) such as "0 3 * * *", or six with the '
    "seconds first"
)
# Any date will do to check an expression.
SOME_DAY = datetime(2024, 1, 1, tzinfo=UTC)


def check_cron(expression: object, tz: str = "UTC") -> str:
    """Return a cron expression, or raise InvalidValue if it is invalid or never matches."""
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
    """Yield the ticks after a moment, in order.

    A time of day that a clock change skips ticks right after the change; one that occurs twice
    ticks the first time only. Hourly and shorter expressions tick through both changes.
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
                f"{expression!r} never matches a date; correct its day and month"
            ) from None
        # In the repeated hour of a clock change, a tick may lie before the last one.
        if tick > last:
            yield tick
            last = tick


@lru_cache(maxsize=1000)
def zone(name: str) -> tzinfo:
    """Return a time zone by name, or raise InvalidValue."""
    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, TypeError, OSError):
        raise InvalidValue(
            f"there is no time zone {name!r}; use a name such as Europe/Paris, and install the "
            "tzdata package if the system has no time zones"
        ) from None


Missed = Literal["once", "skip", "all"]
# With missed="skip" a run that did not start within this time of its tick is skipped.
LATE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Rule:
    """An interval, a cron expression, or neither: then the handler sets the next run."""

    every: timedelta | None = None
    cron: str | None = None
    tz: str = "UTC"
    missed: Missed = "once"
    jitter: timedelta | None = None

    @property
    def has_ticks(self) -> bool:
        return self.every is not None or self.cron is not None

    def ticks(self, tick: datetime, after: datetime) -> Iterator[datetime]:
        """Yield the ticks after a moment; those of `every` are counted from `tick`."""
        with suppress(OverflowError):  # there are no dates after the year 9999
            if self.cron is not None:
                yield from ticks_after(self.cron, self.tz, after)
            elif self.every is not None:
                steps = (after - tick) // self.every + 1 if after >= tick else 0
                following = tick + steps * self.every
                while True:
                    yield following
                    following += self.every

    def next_tick(self, tick: datetime, after: datetime) -> datetime | None:
        return next(self.ticks(tick, after), None)


def make_rule(
    what: str,
    every: timedelta | str | None = None,
    cron: str | None = None,
    tz: str | None = None,
    missed: str | None = None,
    jitter: timedelta | str | None = None,
) -> Rule:
    """Return the rule for user input, or raise InvalidValue."""
    if every is not None and cron is not None:
        raise InvalidValue(f"{what}: every and cron are both given; leave one out")
    zone(tz or "UTC")
    return Rule(
        None if every is None else parse_duration(every, what=f"{what}: every"),
        None if cron is None else check_cron(cron, tz or "UTC"),
        tz or "UTC",
        check_missed(missed or "once"),
        None if jitter is None else parse_duration(jitter, what=f"{what}: jitter"),
    )


def check_missed(value: str) -> Missed:
    for allowed in get_args(Missed):
        if value == allowed:
            return allowed  # type: ignore[no-any-return]
    names = ", ".join(repr(name) for name in get_args(Missed))
    raise InvalidValue(f"missed must be one of {names}, not {value!r}")


def first_tick(rule: Rule, now: datetime) -> datetime:
    """Return the first tick of a new schedule: now, or the next tick of its cron expression."""
    return now if rule.cron is None else next(rule.ticks(now, now))


def following_tick(
    rule: Rule, tick: datetime, started: datetime, ended: datetime
) -> datetime | None:
    """Return the tick that follows a run; None if there is no rule.

    A run that began before its tick was triggered by hand, so the tick is still to come.
    """
    if started < tick:
        return tick if rule.has_ticks else None
    match rule.missed:
        case "all":
            return rule.next_tick(tick, after=tick)
        case "skip":
            return rule.next_tick(tick, after=max(started, ended))
        case "once":  # one run covers every tick up to its start
            return rule.next_tick(tick, after=started)


def is_missed(rule: Rule, tick: datetime, due: datetime, started: datetime) -> bool:
    """Whether a run is skipped because it is too late."""
    if rule.missed != "skip" or not rule.has_ticks or started < tick:
        return False
    late = LATE if rule.every is None else min(LATE, rule.every / 2)
    return started - due > late


def jittered(rule: Rule, name: str, tick: datetime) -> datetime:
    """Return when a tick's run is due; the jitter is the same in every process."""
    if not rule.jitter:
        return tick
    seed = f"{name}\0{int(tick.timestamp() * 1_000_000)}".encode()
    share = int.from_bytes(hashlib.blake2b(seed, digest_size=8).digest(), "big") / 2**64
    try:
        return tick + rule.jitter * share
    except OverflowError:
        return tick


def next_runs(
    rule: Rule, name: str, planned: datetime, tick: datetime, now: datetime, count: int
) -> list[datetime]:
    """Predict the next runs, if each succeeds at once and its handler does not change the time."""
    begins = max(planned, now)
    after = tick if rule.missed == "all" else max(tick, begins)
    ticks = rule.ticks(tick, after) if rule.has_ticks else iter(())
    if begins < tick:
        ticks = chain([tick], ticks)
    return [planned, *(jittered(rule, name, later) for later in islice(ticks, count - 1))]


UNITS = (
    (timedelta(days=7), "week"),
    (timedelta(days=1), "day"),
    (timedelta(hours=1), "hour"),
    (timedelta(minutes=1), "minute"),
    (timedelta(seconds=1), "second"),
    (timedelta(milliseconds=1), "millisecond"),
)


def in_words(rule: Rule) -> str:
    """Describe when a schedule runs.

    >>> in_words(Rule(cron="0 3 * * 1-5", tz="Europe/Paris"))
    'at 03:00 on Monday through Friday, Europe/Paris time'
    >>> in_words(Rule(every=timedelta(minutes=90)))
    'every 90 minutes'
    """
    if rule.cron is not None:
        return f"{cron_in_words(rule.cron)}, {rule.tz}{'' if rule.tz == 'UTC' else ' time'}"
    if rule.every is not None:
        return span_in_words(rule.every)
    return "when its handler says"


def cron_in_words(expression: str) -> str:
    """Describe when a cron expression ticks."""
    try:
        text = CronSim(expression, SOME_DAY).explain()
    except CronSimError:
        return f"never: {expression!r} is not a cron expression"
    return text[0].lower() + text[1:]


def span_in_words(every: timedelta) -> str:
    """Describe an interval."""
    for unit, name in UNITS:
        count, rest = divmod(every, unit)
        if count and not rest:
            return f"every {name}" if count == 1 else f"every {count} {name}s"
    return f"every {every.total_seconds():g} seconds"
