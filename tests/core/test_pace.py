"""The pace of built-in jobs: what is due, what a late slice catches up, and when to continue."""

import pytest

from forge.core.pace import MAX_CATCH_UP, PAUSE, SHORTEST_PAUSE, Pace


def test_what_is_due_grows_with_time_and_shrinks_with_what_is_taken() -> None:
    pace = Pace(10, 100.0)

    assert (pace.due(101.0), pace.after(10).due(101.0), pace.after(4).due(101.0)) == (10, 0, 6)


@pytest.mark.parametrize(
    ("taken_until", "due"),
    [(99.0, 10), (0.0, round(10 * (PAUSE + MAX_CATCH_UP))), (5000.0, 0)],
    ids=["on time", "after an hour without a worker", "by a clock that was ahead"],
)
def test_a_late_slice_catches_up_a_little(taken_until: float, due: int) -> None:
    assert Pace(10, taken_until).caught_up(100.0).due(100.0) == due


def test_a_slow_rate_pauses_until_one_row_is_due() -> None:
    assert Pace(0.1, 0).pause == 10
    assert Pace(0.1, 90.0).caught_up(100.0).due(100.0) == 1


def test_the_time_that_a_slice_took_is_part_of_the_pause() -> None:
    delays = [Pace(10, 100.0).delay(now).total_seconds() for now in (100.0, 100.4, 200.0)]

    assert delays == [PAUSE, pytest.approx(0.6), SHORTEST_PAUSE]
