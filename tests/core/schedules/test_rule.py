"""The rule of a schedule: its ticks, jitter and predicted runs."""

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from forge.core.outcome import Returned
from forge.core.schedules.rule import Rule, following_tick, jittered, make_rule
from tests.core.schedules.schedule_rows import HOUR, MINUTE, T0, ended

moments = st.datetimes(datetime(2025, 1, 1), datetime(2027, 1, 1), timezones=st.just(UTC))
spans = st.timedeltas(timedelta(milliseconds=1), timedelta(days=2))


@given(spans, moments, moments)
def test_interval_ticks_never_drift_and_always_advance(
    every: timedelta, tick: datetime, after: datetime
) -> None:
    following = Rule(every).next_tick(tick, after)

    assert following is not None
    assert (following - tick) % every == timedelta(0)
    assert following > after or (following == tick and after < tick)
    assert following - every <= max(after, tick)


@given(
    st.sampled_from(["once", "skip", "all"]),
    spans,
    moments,
    st.timedeltas(timedelta(0), timedelta(days=9)),
    st.timedeltas(timedelta(0), timedelta(days=9)),
)
def test_each_tick_is_run_left_out_or_still_to_come(
    missed: Any, every: timedelta, tick: datetime, late: timedelta, took: timedelta
) -> None:
    started, end = tick + late, tick + late + took

    following = following_tick(Rule(every, missed=missed), tick, started, end)

    assert following is not None
    assert following > tick
    match missed:
        case "all":
            assert following == tick + every
        case "once":
            assert started < following <= started + every
        case "skip":
            assert end < following <= end + every


@given(st.timedeltas(timedelta(seconds=1), timedelta(days=1)), moments, st.text(max_size=5))
def test_jitter_is_the_same_in_every_process(jitter: timedelta, tick: datetime, name: str) -> None:
    rule = Rule(HOUR, jitter=jitter)

    due = jittered(rule, name, tick)

    assert due == jittered(rule, name, tick)
    assert tick <= due <= tick + jitter


def test_jitter_spreads_schedules_and_ticks() -> None:
    rule = Rule(HOUR, jitter=MINUTE)

    offsets = {jittered(rule, f"tick {n}", T0) - T0 for n in range(100)}
    over_time = {jittered(rule, "tick", T0 + n * HOUR) - n * HOUR for n in range(100)}

    assert len(offsets) == len(over_time) == 100
    assert max(offsets) > 0.9 * MINUTE
    assert min(offsets) < 0.1 * MINUTE


def test_jitter_never_moves_the_beat() -> None:
    row: dict[str, Any] = {"every": HOUR, "jitter": 30 * MINUTE}
    first = ended(Returned(None), **row)
    second = ended(
        Returned(None),
        **row,
        next_run_at=first.next_at,
        tick_at=first.tick_at,
        running_since=first.next_at,
    )

    assert (first.tick_at, second.tick_at) == (T0 + HOUR, T0 + 2 * HOUR)
    assert second.next_at is not None
    assert second.tick_at is not None
    assert second.tick_at <= second.next_at <= second.tick_at + 30 * MINUTE


def test_a_rule_is_checked_as_it_is_written() -> None:
    rule = make_rule("tick", "90m", None, None, "all", "5s")

    assert rule == Rule(timedelta(minutes=90), None, "UTC", "all", timedelta(seconds=5))
    assert make_rule("tick", None, " 0  3 * * * ", "Europe/Paris").cron == "0 3 * * *"
