"""What follows a run: missed ticks, retries, failures, all without a clock or a database."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from forge.core.errors import InvalidValue
from forge.core.outcome import (
    MAX_LOSSES,
    Crashed,
    Expired,
    Failure,
    Raised,
    Released,
    Returned,
    Snoozed,
)
from forge.core.retry import Retry
from forge.core.schedules.rule import Rule, is_missed
from forge.core.schedules.run import make_run, write_next
from tests.core.schedules.schedule_rows import HOUR, MINUTE, T0, ended, record

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
    released = ended(Released(has_begun=True), every=HOUR, tick_at=T0 - MINUTE)
    unbegun = ended(Released(), every=HOUR, tick_at=T0 - MINUTE)
    crashed = ended(Crashed("signal SIGKILL"), every=HOUR)

    assert (snoozed.outcome, snoozed.delay, snoozed.tick_at) == ("snoozed", 300.0, T0)
    assert (released.outcome, released.next_at, released.tick_at) == ("released", T0, T0 - MINUTE)
    assert unbegun == released._replace(outcome=None)
    assert (crashed.outcome, crashed.delay) == ("crashed", 60.0)


def test_a_lost_database_is_no_failure_until_it_was_lost_too_often() -> None:
    gone = Raised(Failure("X", "gone", "", is_loss=True))

    first = ended(gone, every=HOUR)
    second = ended(gone, every=HOUR, crashes=1)
    last = ended(gone, every=HOUR, crashes=MAX_LOSSES)

    assert (first.outcome, first.delay, first.tick_at, first.error) == ("lost", 1.0, T0, "X: gone")
    assert (second.outcome, second.delay) == ("lost", 2.0)
    assert (last.outcome, last.delay) == ("failed", 60.0)


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
