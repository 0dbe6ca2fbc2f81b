"""Windows of statistics: their steps, bounds and points."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forge.core.errors import InvalidValue
from forge.core.histogram import bucket_of
from forge.core.job_statistics import (
    MAX_POINTS,
    OUTCOMES,
    StatisticsWindow,
    Sums,
    Tally,
    by_type,
    series,
)

NOW = datetime(2026, 5, 4, 12, 34, 56, tzinfo=UTC)
ZEROS = dict.fromkeys(OUTCOMES, 0)


def ago(**length: float) -> datetime:
    return NOW - timedelta(**length)


@pytest.mark.parametrize(
    ("since", "step", "points"),
    [
        (None, "1m", 61),
        (ago(minutes=15), "1m", 16),
        (ago(hours=24), "10m", 145),
        (ago(days=7), "1h", 169),
        (ago(days=30), "6h", 121),
        (ago(days=400), "2d", 201),
    ],
)
def test_a_step_is_chosen_by_the_length(since: datetime | None, step: str, points: int) -> None:
    chosen = StatisticsWindow.of(NOW, since=since)

    assert chosen == StatisticsWindow.of(NOW, since=since, step=step)
    assert chosen.points == points == len(list(chosen.times()))


@given(
    st.timedeltas(min_value=timedelta(microseconds=1), max_value=timedelta(days=5000)),
    st.booleans(),
)
def test_a_window_holds_what_was_asked_for_in_few_whole_steps(
    length: timedelta, of_tenant: bool
) -> None:
    window = StatisticsWindow.of(NOW, since=NOW - length, of_tenant=of_tenant)

    assert window.since <= NOW - length < NOW <= window.until
    assert window.since + window.points * window.step == window.until
    assert 0 < window.points <= 203 <= MAX_POINTS


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"since": NOW}, "let it end later"),
        ({"since": NOW.replace(tzinfo=None)}, "no time zone"),
        ({"since": datetime(1999, 1, 1, tzinfo=UTC)}, "from 2000-01-01"),
        ({"until": NOW + timedelta(days=2)}, "until tomorrow"),
        ({"step": "90s"}, "whole minutes"),
        ({"step": "soon"}, "not a duration"),
        ({"step": "1m", "since": ago(hours=26)}, "1,561 points; at most 1,500"),
        ({"step": "5m", "since": ago(days=3)}, "multiple of 1h"),
        ({"step": "1m", "of_tenant": True}, "multiple of 5m"),
    ],
)
def test_a_window_that_cannot_be_read_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        StatisticsWindow.of(NOW, **given)


def test_a_series_has_a_point_for_each_step() -> None:
    window = StatisticsWindow.of(NOW, since=ago(minutes=3))
    at = datetime(2026, 5, 4, 12, 33, tzinfo=UTC)
    sums = Sums(at, ZEROS | {"completed": 2, "failed": 1}, {bucket_of(0.05): 3}, {})

    found = series(window, [sums])

    assert [(point.at.minute, point.completed) for point in found.series] == [
        (31, 0),
        (32, 0),
        (33, 2),
        (34, 0),
    ]
    assert found.series[2].wait_ms.p99 == pytest.approx(50, rel=0.1)
    assert found.series[2].run_ms.p50 is None


def test_totals_have_a_rate_and_a_share_of_failures() -> None:
    window = StatisticsWindow.of(NOW, since=ago(minutes=10), is_series=False)
    quiet = Sums(("mail", "default"), ZEROS | {"retried": 4}, {}, {})
    busy = Sums(("export", "default"), ZEROS | {"completed": 90, "failed": 10}, {}, {})

    first, second = by_type(window, [quiet, busy]).items

    assert (first.job_type, first.per_minute, first.failed_percent) == ("export", 9.146, 10.0)
    assert (second.job_type, second.failed_percent, second.retried) == ("mail", None, 4)


def test_a_tally_without_what_was_written_is_what_was_not() -> None:
    tally = Tally()
    tally.outcomes["completed"] += 5
    tally.runs[16000] += 5
    written = tally.copy()
    tally.outcomes["failed"] += 1

    left = tally.copy().subtract(written)

    assert (dict(left.outcomes), dict(left.runs), left.size) == ({"failed": 1}, {}, 1)
    assert left.add(written).outcomes == tally.outcomes
