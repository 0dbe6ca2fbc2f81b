"""The checker of the fault bench finds contradictions between a history and the database."""

import itertools
from typing import Any

import pytest
from faultbench.checker import Move, Row, Verdict, judge
from faultbench.history import Event, Kind

WORKER, OTHER = 100, 200


class Story:
    """A handwritten run of one job, with one event per time step."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.rows: list[Row] = []
        self.moves: list[Move] = []
        self._clock = itertools.count(1)

    def dispatched(self, mark: str = "a", *, acknowledged: bool = True) -> None:
        self._event(Kind.DISPATCHING, mark=mark)
        if acknowledged:
            self._event(Kind.ACKNOWLEDGED, mark=mark, job=mark)

    def started(self, lease: int = 1, pid: int = WORKER, mark: str = "a") -> None:
        self._event(Kind.STARTED, mark=mark, job=mark, lease=lease, pid=pid)

    def ended(self, lease: int = 1, pid: int = WORKER, mark: str = "a", **detail: Any) -> None:
        self._event(Kind.ENDED, mark=mark, job=mark, lease=lease, pid=pid, detail=detail)

    def signalled(self, kind: Kind, pid: int = WORKER) -> None:
        self._event(kind, pid=pid)

    def moved(self, becomes: str, lease: int = 1, was: str = "running", mark: str = "a") -> None:
        self.moves.append(Move(mark, lease, was, becomes, float(next(self._clock))))

    def left(self, status: str, lease: int = 1, mark: str = "a") -> None:
        self.rows.append(Row(mark, mark, status, lease))

    def judged(self) -> Verdict:
        return judge(self.events, self.rows, self.moves)

    def _event(self, kind: Kind, **values: Any) -> None:
        self.events.append(Event(kind=kind, monotonic=float(next(self._clock)), **values))


@pytest.fixture
def story() -> Story:
    return Story()


def test_a_job_that_ran_once_has_no_finding(story: Story) -> None:
    story.dispatched()
    story.started()
    story.ended()
    story.moved("completed")
    story.left("completed")

    found = story.judged()

    assert found == Verdict(jobs=1)
    assert found.broken() == {}


def test_an_acknowledged_job_without_a_row_is_lost(story: Story) -> None:
    story.dispatched()

    assert story.judged().lost == ("a",)


@pytest.mark.parametrize("status", ["pending", "retry", "running", "claimed"])
def test_an_acknowledged_job_that_is_not_final_is_lost(story: Story, status: str) -> None:
    story.dispatched()
    story.left(status)

    assert story.judged().lost == ("a",)


def test_a_job_that_was_completed_without_running_is_lost(story: Story) -> None:
    story.dispatched()
    story.left("completed")

    assert story.judged().lost == ("a",)


def test_a_dispatch_without_an_acknowledgement_is_not_lost(story: Story) -> None:
    story.dispatched(acknowledged=False)

    found = story.judged()

    assert (found.lost, found.jobs) == ((), 0)


def test_a_job_that_was_never_dispatched_is_unexpected(story: Story) -> None:
    story.started()

    assert story.judged().unexpected == ("a",)


def test_a_completion_before_the_end_of_its_handler_is_stale(story: Story) -> None:
    story.dispatched()
    story.started(lease=1)
    story.started(lease=2, pid=OTHER)
    story.ended(lease=1)
    # The first attempt's outcome replaced the second's.
    story.moved("completed", lease=2)
    story.ended(lease=2, pid=OTHER)
    story.left("completed", lease=2)

    assert story.judged().stale == ("a",)


def test_a_final_job_that_moves_again_is_revived(story: Story) -> None:
    story.dispatched()
    story.started()
    story.ended()
    story.moved("completed")
    story.moved("retry", was="completed")

    assert story.judged().revived == ("a",)


def test_two_final_changes_or_two_rows_are_accepted_twice(story: Story) -> None:
    for mark in ("a", "b"):
        story.dispatched(mark)
    story.moved("completed", mark="a")
    story.moved("dead_letter", mark="a")
    story.left("completed", mark="a")
    story.rows += [Row("1", "b", "completed", 1), Row("2", "b", "completed", 1)]

    assert story.judged().accepted_twice == ("a", "b")


def test_attempts_in_two_live_processes_overlap(story: Story) -> None:
    story.dispatched()
    story.started(lease=1, pid=WORKER)
    story.started(lease=2, pid=OTHER)
    story.ended(lease=1, pid=WORKER)
    story.ended(lease=2, pid=OTHER)

    found = story.judged()

    assert (found.overlapping, found.overlap) == (("a",), 1.0)


@pytest.mark.parametrize("end", [Kind.KILLED, Kind.GONE])
def test_a_process_that_has_ended_overlaps_with_nothing(story: Story, end: Kind) -> None:
    story.dispatched()
    story.started(lease=1, pid=WORKER)
    story.signalled(end)
    story.started(lease=2, pid=OTHER)
    story.ended(lease=2, pid=OTHER)

    assert story.judged().overlap == 0


def test_a_paused_process_overlaps_only_while_it_runs(story: Story) -> None:
    story.dispatched()
    story.started(lease=1, pid=WORKER)
    story.signalled(Kind.PAUSED)
    story.started(lease=2, pid=OTHER)
    story.signalled(Kind.RESUMED)
    story.ended(lease=1, pid=WORKER)
    story.ended(lease=2, pid=OTHER)

    assert story.judged().overlap == 1.0


def test_a_child_dies_with_the_worker_that_started_it(story: Story) -> None:
    story.dispatched()
    story._event(Kind.STARTED, mark="a", job="a", lease=1, pid=101, parent=WORKER)
    story.signalled(Kind.KILLED, pid=WORKER)
    story.started(lease=2, pid=OTHER)
    story.ended(lease=2, pid=OTHER)

    assert story.judged().overlap == 0


def test_a_retry_of_a_handler_that_raised_is_not_a_duplicate(story: Story) -> None:
    story.dispatched()
    story.started(lease=1)
    story.ended(lease=1, how="raised")
    story.started(lease=2)

    assert story.judged().duplicated == ()

    story.started(lease=3)

    assert story.judged().duplicated == ("a",)


def test_handlers_that_the_engine_stopped_are_counted(story: Story) -> None:
    story.dispatched()
    story.started()
    story.ended(how="stopped")

    assert story.judged().stopped == ("a",)


def test_a_row_can_allow_a_finding(story: Story) -> None:
    story.dispatched()
    story.left("dead_letter")

    found = story.judged()

    assert found.broken() == {"unsuccessful": ("a",)}
    assert found.broken(allow=["unsuccessful"]) == {}
