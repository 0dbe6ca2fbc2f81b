"""Lanes: while others come and go, no lane with due jobs is skipped forever."""

from datetime import UTC, datetime
from typing import NamedTuple
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from forge.core.workers.lanes import BEGINNING, LOOK_AGAIN, MAX_AT_ONCE, Lanes

URGENCIES = (0, 25, 50, 75, 100)


class Seen(NamedTuple):
    lane: int
    due_in: float
    urgency: int
    head: float = 0.0


class Waiting(NamedTuple):
    due: float
    id: UUID
    lane: int

    @property
    def scheduled_at(self) -> datetime:
        return datetime.fromtimestamp(self.due, UTC)


class Queue:
    """A queue in memory that answers a survey and a claim as the database does."""

    def __init__(self, lengths: dict[int, int]) -> None:
        self.waiting = [
            Waiting(float(place), UUID(int=lane * 1000 + place), lane)
            for lane, length in lengths.items()
            for place in range(1, length + 1)
        ]

    def survey(self) -> list[Seen]:
        heads: dict[int, float] = {}
        for job in self.waiting:
            heads[job.lane] = min(job.due, heads.get(job.lane, job.due))
        return [Seen(lane, 0.0, _urgency(lane), head) for lane, head in heads.items()]

    def add(self, due: float, lane: int) -> Waiting:
        job = Waiting(due, UUID(int=len(self.waiting) + 10**9), lane)
        self.waiting.append(job)
        return job

    def claim(self, asked: list[tuple[int, datetime, UUID]], limit: int) -> list[Waiting]:
        behind = {lane: place for lane, *place in asked}
        found = [
            job
            for job in self.waiting
            if job.lane in behind and [job.scheduled_at, job.id] > behind[job.lane]
        ]
        taken = sorted(found, key=lambda job: (job.scheduled_at, job.id))[:limit]
        self.waiting = [job for job in self.waiting if job not in taken]
        return taken


lengths = st.dictionaries(st.integers(0, 60), st.integers(1, 6), min_size=1, max_size=40)


@given(lengths, st.integers(1, 20))
def test_every_due_job_is_taken_the_urgent_before_the_rest(
    lengths: dict[int, int], limit: int
) -> None:
    queue, lanes = Queue(lengths), Lanes(lambda lane: True)
    taken: list[Waiting] = []

    lanes.surveyed(queue.survey(), 0, 0)
    while asked := lanes.next():
        claimed = queue.claim(asked, limit)
        lanes.took(asked, claimed, limit, lambda job: job.lane)  # type: ignore[attr-defined]
        taken += claimed

    assert queue.waiting == []
    urgencies = [_urgency(job.lane) for job in taken]
    assert urgencies == sorted(urgencies)


@given(lengths)
def test_one_claim_asks_only_lanes_of_the_greatest_urgency_and_not_too_many(
    lengths: dict[int, int],
) -> None:
    lanes = Lanes(lambda lane: True)
    lanes.surveyed(Queue(lengths).survey(), 0, 0)

    asked = lanes.next()

    most = min(map(_urgency, lengths))
    assert {_urgency(lane) for lane, *_ in asked} == {most}
    assert len(asked) == min(MAX_AT_ONCE, [*map(_urgency, lengths)].count(most))


@given(lengths, st.sets(st.integers(0, 60)))
def test_lanes_of_others_are_never_asked(lengths: dict[int, int], mine: set[int]) -> None:
    lanes = Lanes(lambda lane: lane.lane in mine)
    lanes.surveyed(Queue(lengths).survey(), 0, 0)

    assert {lane for lane, *_ in lanes.next()} <= mine
    assert bool(lanes.next()) is bool(mine & lengths.keys())


@given(st.lists(st.floats(0, 1e6), min_size=1), st.floats(0, 1e6), st.floats(0, 0.1))
def test_a_survey_is_due_at_the_latest_when_the_next_job_is(
    due: list[float], now: float, took: float
) -> None:
    lanes = Lanes(lambda lane: True)

    lanes.surveyed([Seen(n, wait, 50) for n, wait in enumerate(due)], now, took)

    later = [wait for wait in due if wait > 0]
    assert lanes.next_due == (now + min(later) if later else None)
    assert lanes.survey_is_due(now + LOOK_AGAIN + 1e-3)
    if lanes.next_due is not None:
        assert lanes.survey_is_due(lanes.next_due)


@given(st.floats(0, 1e3), st.floats(0, 1e3), st.floats(0, 100))
def test_a_hint_never_makes_a_survey_later(now: float, after: float, took: float) -> None:
    lanes = Lanes(lambda lane: True)
    lanes.surveyed([Seen(1, 0.0, 50)], now, took)
    at = now + after
    was_due = lanes.survey_is_due(at)

    lanes.notify(now)

    assert lanes.survey_is_due(at) or not was_due


@given(st.floats(0, 1e3), st.floats(0.001, 100))
def test_looking_costs_at_most_a_tenth_of_the_time_however_often_one_is_notified(
    now: float, took: float
) -> None:
    lanes = Lanes(lambda lane: True)
    lanes.surveyed([Seen(1, 0.0, 50)], now, took)

    lanes.notify(now)

    assert not lanes.survey_is_due(now + 9 * took - LOOK_AGAIN - 1e-3)


@given(
    busy=st.integers(1, 200),
    older=st.integers(0, 100),
    limit=st.integers(1, 50),
    surveys=st.lists(st.booleans(), min_size=20, max_size=20),
)
def test_a_lane_waits_only_for_older_jobs_and_one_claim_per_older_head(
    busy: int, older: int, limit: int, surveys: list[bool]
) -> None:
    """Other lanes of the same urgency keep getting jobs newer than the one that waits."""
    queue, lanes = Queue({}), Lanes[Seen](lambda lane: True)
    others = [5 * n for n in range(1, busy + 1)]
    now = 1000.0
    for place, lane in enumerate(others):
        for n in range(limit + 1):
            queue.add(float(place if place < older and n == 0 else now + n), lane)
    waiting = queue.add(500.0, 0)
    ahead = min(older, busy)
    bound = ahead // limit + max(ahead - MAX_AT_ONCE + 1, 0) + 1

    lanes.surveyed(queue.survey(), 0, 0)
    for claim in range(bound):
        if claim and surveys[claim % 20]:
            lanes.surveyed(queue.survey(), 0, 0)
        asked = lanes.next()
        taken = queue.claim(asked, limit)
        lanes.took(asked, taken, limit, lambda job: job.lane)  # type: ignore[attr-defined]
        for job in taken:
            queue.add(now + claim + 1, job.lane)
        if any(lane == 0 for lane, *_ in asked):
            break

    assert any(lane == 0 for lane, *_ in asked)
    assert waiting not in queue.waiting or len(taken) == limit


def _urgency(lane: int) -> int:
    return URGENCIES[lane % 5]


def test_a_hint_is_guessed_to_mean_where_work_was_last() -> None:
    lanes = Lanes(lambda lane: True)
    lane = Seen(1, 0.0, 50)
    lanes.surveyed([lane], now=0.0, took=0.0)
    lanes.took(lanes.next(), [], 10, lambda job: None)

    lanes.notify(5.0)

    assert lanes.guess() == [(lane.lane, *BEGINNING)]
    assert lanes.guess() == []
    assert lanes.survey_is_due(5.0)


def test_nothing_is_guessed_where_urgencies_differ() -> None:
    lanes = Lanes(lambda lane: True)
    lanes.surveyed([Seen(1, 0.0, 50), Seen(2, 0.0, 75)], now=0.0, took=0.0)
    lanes.took(lanes.next(), [], 10, lambda job: None)
    lanes.took(lanes.next(), [], 10, lambda job: None)

    lanes.notify(5.0)

    assert lanes.guess() == []
