"""Predictions of the next runs of a schedule."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from forge.core.schedules.rule import Rule, jittered
from tests.core.schedules.schedule_rows import record

T0 = datetime(2026, 6, 1, 12, tzinfo=UTC)
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


@pytest.mark.parametrize(
    ("columns", "now", "runs"),
    [
        ({}, T0 - MINUTE, [T0, T0 + HOUR, T0 + 2 * HOUR]),
        ({"tick_at": T0 + MINUTE}, T0, [T0, T0 + MINUTE, T0 + MINUTE + HOUR]),
        ({}, T0 + 2.5 * HOUR, [T0, T0 + 3 * HOUR, T0 + 4 * HOUR]),
        ({"missed": "all"}, T0 + 2.5 * HOUR, [T0, T0 + HOUR, T0 + 2 * HOUR]),
        ({"every": None}, T0, [T0]),
        ({"every": None, "cron": "0 3", "tz": "UTC"}, T0, [T0]),
        ({"every": None, "cron": "0 3 * * *", "tz": "Nowhere/Land"}, T0, [T0]),
        ({"enabled": False}, T0, []),
        ({"next_run_at": None}, T0, []),
    ],
    ids=[
        "hourly",
        "by hand",
        "overdue",
        "catching up",
        "no rule",
        "no cron",
        "no such zone",
        "disabled",
        "not planned",
    ],
)
def test_one_that_waits_begins_with_its_time(
    columns: dict[str, Any], now: datetime, runs: list[datetime]
) -> None:
    row = record(**{"every": HOUR, "running_since": None} | columns)

    assert row.next_runs(now, 3) == runs


@pytest.mark.parametrize(
    ("columns", "now", "runs"),
    [
        ({}, T0 + MINUTE, [T0 + HOUR, T0 + 2 * HOUR, T0 + 3 * HOUR]),
        ({}, T0 + 2.5 * HOUR, [T0 + HOUR, T0 + 3 * HOUR, T0 + 4 * HOUR]),
        ({"missed": "skip"}, T0 + 2.5 * HOUR, [T0 + 3 * HOUR, T0 + 4 * HOUR, T0 + 5 * HOUR]),
        ({"missed": "all"}, T0 + 2.5 * HOUR, [T0 + HOUR, T0 + 2 * HOUR, T0 + 3 * HOUR]),
        # out of turn: the tick is still to come
        ({"tick_at": T0 + 5 * MINUTE}, T0 + MINUTE, [T0 + n * HOUR + 5 * MINUTE for n in range(3)]),
        # triggered again during its run
        (
            {"next_run_at": T0 + 2 * MINUTE, "tick_at": T0},
            T0 + 3 * MINUTE,
            [T0 + 2 * MINUTE, T0 + HOUR, T0 + 2 * HOUR],
        ),
        ({"every": None}, T0 + MINUTE, []),
    ],
    ids=["hourly", "long", "long, skips", "long, all", "by hand", "once more", "handler says"],
)
def test_one_that_runs_begins_with_what_follows_the_run(
    columns: dict[str, Any], now: datetime, runs: list[datetime]
) -> None:
    row = record(**{"every": HOUR, "running_since": T0} | columns)

    assert row.next_runs(now, 3) == runs


def test_predicted_runs_include_jitter() -> None:
    rule = Rule(every=HOUR, jitter=5 * MINUTE)
    row = record(every=HOUR, jitter=5 * MINUTE, running_since=T0)

    runs = row.next_runs(T0 + MINUTE, 3)

    assert runs == [jittered(rule, row.name, T0 + n * HOUR) for n in (1, 2, 3)]
