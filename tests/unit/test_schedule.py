"""What follows a run: ticks, missed ones, jitter, failures, all without a clock or a database."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forge.core.errors import InvalidValue
from forge.core.outcome import (
    Crashed,
    Expired,
    Failure,
    Outcome,
    Raised,
    Released,
    Returned,
    Snoozed,
)
from forge.core.retry import Retry
from forge.core.run import Conclusion, conclude, make_run, rule_of, write_next
from forge.core.schedule import Rule, following_tick, is_missed, jittered, make_rule, next_runs
from forge.core.schedule_record import ScheduleRecord

T0 = datetime(2026, 6, 1, 12, tzinfo=UTC)
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
moments = st.datetimes(datetime(2025, 1, 1), datetime(2027, 1, 1), timezones=st.just(UTC))
spans = st.timedeltas(timedelta(milliseconds=1), timedelta(days=2))


def record(**columns: Any) -> ScheduleRecord:
    known = dict.fromkeys(ScheduleRecord.__dataclass_fields__) | {
        "id": UUID(int=1),
        "type": "tick",
        "key": "",
        "payload": {},
        "enabled": True,
        "next_run_at": T0,
        "running_since": T0,
        "consecutive_failures": 0,
        "created_at": T0,
        "updated_at": T0,
        "lease": 1,
        "tz": "UTC",
        "missed": "once",
        "priority": 50,
        "recent_runs": [],
        "crashes": 0,
    }
    return ScheduleRecord(**known | columns)


def ended(
    outcome: Outcome,
    *,
    seconds: float = 0.0,
    retry: Retry | None = None,
    default: Rule | None = None,
    **columns: Any,
) -> Conclusion:
    row = record(**columns)
    run = make_run(row, "{}", None)
    rule = rule_of(row, default)
    return conclude(run, outcome, rule=rule, retry=retry, seconds=seconds, chance=0.0)


FAILED = Raised(Failure("ValueError", "no", ""))


@pytest.mark.parametrize(
    ("missed", "expected"),
    [("once", T0 + 4 * HOUR), ("skip", T0 + 4 * HOUR), ("all", T0 + HOUR)],
)
def test_what_was_missed_while_no_worker_was_there(missed: str, expected: datetime) -> None:
    late = ended(Returned(None), every=HOUR, missed=missed, running_since=T0 + 3.5 * HOUR)

    assert late.next_at == expected


@pytest.mark.parametrize(
    ("missed", "expected"),
    [("once", T0 + HOUR), ("skip", T0 + 3 * HOUR), ("all", T0 + HOUR)],
)
def test_what_came_during_a_long_run(missed: str, expected: datetime) -> None:
    long = ended(Returned(None), every=HOUR, missed=missed, seconds=2.5 * 3600)

    assert long.next_at == expected


def test_a_run_that_is_late_is_left_out_only_where_that_is_asked_for() -> None:
    late = T0 + 2 * MINUTE

    skip = [is_missed(Rule(HOUR, missed=m), T0, T0, late) for m in ("once", "skip", "all")]

    assert skip == [False, True, False]
    assert not is_missed(Rule(HOUR, missed="skip"), T0, T0, T0 + MINUTE)
    assert is_missed(Rule(10 * MINUTE / 60, missed="skip"), T0, T0, T0 + MINUTE / 6)
    assert not is_missed(Rule(missed="skip"), T0, T0, late), "nothing says when the next would be"
    assert not is_missed(Rule(HOUR, missed="skip"), T0 + HOUR, T0, late), "it was asked for by hand"


def test_what_is_left_out_goes_to_the_next_tick_and_says_so() -> None:
    row = record(every=HOUR, missed="skip", running_since=T0 + 2.5 * HOUR)

    assert make_run(row, "{}", None).expired
    skipped = ended(Expired(), every=HOUR, missed="skip", running_since=T0 + 2.5 * HOUR)
    assert (skipped.next_at, skipped.outcome) == (T0 + 3 * HOUR, "skipped")


def test_a_clock_that_was_set_back_during_a_run_brings_no_second_run() -> None:
    back = ended(Returned(None), every=HOUR, running_since=T0 + MINUTE, seconds=-600)

    assert back.next_at == T0 + HOUR


def test_a_clock_that_was_set_forward_brings_one_run_for_all_that_it_skipped() -> None:
    forward = ended(Returned(None), cron="0 3 * * *", running_since=T0 + timedelta(days=30))

    assert forward.next_at == datetime(2026, 7, 2, 3, tzinfo=UTC)


def test_a_run_out_of_turn_leaves_the_next_tick() -> None:
    for missed in ("once", "skip", "all"):
        early = ended(
            Returned(None),
            every=HOUR,
            missed=missed,
            tick_at=T0 + HOUR,
            running_since=T0 + MINUTE,
            next_run_at=T0 + MINUTE,
        )
        assert (early.next_at, early.tick_at) == (T0 + HOUR, None)


def test_a_retry_stands_for_the_tick_that_failed() -> None:
    failed = ended(FAILED, every=HOUR)
    again = ended(
        Returned(None),
        every=HOUR,
        consecutive_failures=1,
        tick_at=failed.tick_at,
        next_run_at=T0 + MINUTE,
        running_since=T0 + MINUTE,
    )

    assert (failed.delay, failed.tick_at, failed.next_at) == (60.0, T0, None)
    assert again.next_at == T0 + HOUR


@pytest.mark.parametrize(
    ("columns", "failures", "delay"),
    [
        ({"every": HOUR}, 0, 60),
        ({"every": HOUR}, 1, 120),
        ({"every": HOUR}, 5, 1920),
        ({"every": HOUR}, 6, 3600),
        ({"every": HOUR}, 500, 3600),
        ({"every": timedelta(seconds=5)}, 0, 5),
        ({"every": timedelta(seconds=5)}, 3, 40),
        ({"cron": "0 0 * * *"}, 7, 7680),
        ({"cron": "0 0 * * *"}, 20, 43200),  # midnight is twelve hours away
        ({}, 0, 60),
        ({}, 50, 3600),
    ],
)
def test_failures_back_off_to_an_hour_or_the_next_tick(
    columns: dict[str, Any], failures: int, delay: float
) -> None:
    failed = ended(FAILED, consecutive_failures=failures, **columns)

    assert failed.delay == delay
    assert failed.error == "ValueError: no"


def test_a_declared_retry_wins() -> None:
    declared = Retry(backoff="linear", max_backoff="1d")

    assert ended(FAILED, retry=declared, consecutive_failures=99, every=HOUR).delay == 100


def test_what_another_attempt_cannot_mend_waits_for_its_next_tick() -> None:
    final = Raised(Failure("X", "no", "", error_class="non_retryable"))

    assert ended(final, every=HOUR).next_at == T0 + HOUR
    assert ended(final).delay == 60


def test_the_other_outcomes() -> None:
    snoozed = ended(Snoozed(5 * MINUTE), every=HOUR)
    released = ended(Released(), every=HOUR, tick_at=T0 - MINUTE)
    crashed = ended(Crashed("signal SIGKILL"), every=HOUR)

    assert (snoozed.outcome, snoozed.delay, snoozed.tick_at) == ("snoozed", 300.0, T0)
    assert (released.outcome, released.next_at, released.tick_at) == ("released", T0, T0 - MINUTE)
    assert (crashed.outcome, crashed.delay) == ("crashed", 60.0)


def test_a_handlers_answer_goes_before_the_rule() -> None:
    at = ended(Returned(write_next(T0 + 5 * HOUR)), every=HOUR)
    after = ended(Returned(write_next(5 * MINUTE)), every=HOUR)

    assert (at.next_at, at.delay) == (T0 + 5 * HOUR, None)
    assert (after.next_at, after.delay) == (None, 300.0)


def test_the_rule_of_the_type_serves_rows_without_one() -> None:
    default = Rule(every=HOUR)

    assert ended(Returned(None), default=default).next_at == T0 + HOUR
    assert ended(Returned(None), default=default, every=MINUTE).next_at == T0 + MINUTE
    assert ended(Returned(None)).next_at is None


@pytest.mark.parametrize(
    "wrong", ["tomorrow", 5, datetime(2030, 1, 1), timedelta(seconds=-1), timedelta.max, {}, True]
)
def test_an_answer_that_is_no_time_is_refused(wrong: object) -> None:
    with pytest.raises(InvalidValue, match="return a datetime with a time zone"):
        write_next(wrong)


@given(spans, moments, moments)
def test_every_so_often_never_drifts_and_never_stands_still(
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
def test_jitter_is_the_same_for_whoever_asks(jitter: timedelta, tick: datetime, name: str) -> None:
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


def test_the_next_runs_can_be_foretold() -> None:
    hourly = record(every=HOUR).next_runs(T0 - MINUTE, 3)
    by_hand = record(every=HOUR, next_run_at=T0, tick_at=T0 + MINUTE).next_runs(T0, 3)
    overdue = record(every=HOUR).next_runs(T0 + 2.5 * HOUR, 3)
    catching_up = record(every=HOUR, missed="all").next_runs(T0 + 2.5 * HOUR, 3)

    assert hourly == [T0, T0 + HOUR, T0 + 2 * HOUR]
    assert by_hand == [T0, T0 + MINUTE, T0 + MINUTE + HOUR]
    assert overdue == [T0, T0 + 3 * HOUR, T0 + 4 * HOUR]
    assert catching_up == [T0, T0 + HOUR, T0 + 2 * HOUR]
    assert record().next_runs(T0) == [T0]
    assert record(enabled=False, every=HOUR).next_runs(T0) == []
    assert record(next_run_at=None).next_runs(T0) == []
    assert len(next_runs(Rule(HOUR), "", T0, T0, T0, 5)) == 5


def test_a_rule_is_checked_as_it_is_written() -> None:
    rule = make_rule("tick", "90m", None, None, "all", "5s")

    assert rule == Rule(timedelta(minutes=90), None, "UTC", "all", timedelta(seconds=5))
    assert make_rule("tick", None, " 0  3 * * * ", "Europe/Paris").cron == "0 3 * * *"
