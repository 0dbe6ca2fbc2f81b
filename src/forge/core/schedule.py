"""When a schedule runs: its rule, the ticks that follow from it, and which are left out."""

import hashlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain, islice
from typing import Literal, get_args

from forge.core.cron import check_cron, ticks_after, zone
from forge.core.duration import parse_duration
from forge.core.errors import InvalidValue

Missed = Literal["once", "skip", "all"]
# With missed="skip" a run that could not begin within this time of its tick is left out.
LATE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Rule:
    """Every so often, by the clock of a time zone, or neither: then its handler says when."""

    every: timedelta | None = None
    cron: str | None = None
    tz: str = "UTC"
    missed: Missed = "once"
    jitter: timedelta | None = None

    @property
    def has_ticks(self) -> bool:
        return self.every is not None or self.cron is not None

    def ticks(self, tick: datetime, after: datetime) -> Iterator[datetime]:
        """Yield the ticks after a moment; those of `every` are counted from a tick of its own."""
        with suppress(OverflowError):  # after the year 9999 there is none
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
    """Check a rule as somebody wrote it."""
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
    """Return when a new schedule runs first: now, or when its clock says so."""
    return now if rule.cron is None else next(rule.ticks(now, now))


def following_tick(
    rule: Rule, tick: datetime, started: datetime, ended: datetime
) -> datetime | None:
    """Return the tick that follows a run; None where there is no rule.

    A run that began before its tick was out of turn, and the tick is still to come.
    """
    if started < tick:
        return tick if rule.has_ticks else None
    match rule.missed:
        case "all":
            return rule.next_tick(tick, after=tick)
        case "skip":
            return rule.next_tick(tick, after=max(started, ended))
        case "once":  # a run stands for every tick up to its start
            return rule.next_tick(tick, after=started)


def is_missed(rule: Rule, tick: datetime, due: datetime, started: datetime) -> bool:
    """Whether a run is to be left out since it comes too late."""
    if rule.missed != "skip" or not rule.has_ticks or started < tick:
        return False
    late = LATE if rule.every is None else min(LATE, rule.every / 2)
    return started - due > late


def jittered(rule: Rule, name: str, tick: datetime) -> datetime:
    """Return when a tick's run is due: every process that is asked says the same."""
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
    """Foretell the next runs, if each succeeds at once and its handler leaves it to the rule."""
    begins = max(planned, now)
    after = tick if rule.missed == "all" else max(tick, begins)
    ticks = rule.ticks(tick, after) if rule.has_ticks else iter(())
    if begins < tick:
        ticks = chain([tick], ticks)
    return [planned, *(jittered(rule, name, later) for later in islice(ticks, count - 1))]
