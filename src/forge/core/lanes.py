"""Which lanes a worker takes its next jobs from: what the last survey saw, and how far it got."""

import heapq
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Generic, Protocol, TypeVar
from uuid import UUID

# The cursor of a lane that was not claimed from yet. The driver sends this time as -infinity.
BEGINNING = (datetime.min.replace(tzinfo=UTC), UUID(int=0))
# How many lanes of one urgency a claim asks at most: each costs a step of the index.
MOST_AT_ONCE = 16
# Lanes remembered for a guess, and how many of them are worth one.
MOST_REMEMBERED = 64
MOST_GUESSED = 4
# Under load the whole queue is looked at this often, and never so often that looking costs more
# than a tenth of the time, however many dead rows an old snapshot makes it step over.
LOOK_AGAIN = 1.0
COST_SHARE = 10
# A hint that something new came is followed this soon while there is other work.
LOOK_SOON = 0.1
NEVER = float("inf")


class SeenLane(Protocol):
    """A lane as a survey returns it."""

    @property
    def lane(self) -> int: ...
    @property
    def due_in(self) -> float: ...
    @property
    def head(self) -> float: ...
    @property
    def urgency(self) -> int: ...


class TakenJob(Protocol):
    """A job as a claim returns it."""

    @property
    def scheduled_at(self) -> datetime: ...
    @property
    def due(self) -> float: ...
    @property
    def id(self) -> UUID: ...


L = TypeVar("L", bound=SeenLane)
Key = tuple[datetime, UUID]


class Lanes(Generic[L]):
    """The lanes with work for this worker, and the place in each up to which it is taken.

    A claim looks only behind that place, so that it need not step over the dead rows that a long
    transaction elsewhere keeps in the index. What turns up before it, a released job or one that
    was committed late, is found by the next survey, which starts every lane anew.

    Among lanes of one urgency those with the oldest heads are asked first. A claim that passes a
    lane over takes only jobs older than that lane's head, or moves at least one lane with an older
    head behind it: a lane with k older heads, n older jobs in all, is asked within
    n // limit + max(k - 15, 0) + 1 claims, however many newer jobs arrive elsewhere.
    """

    def __init__(self, serves: Callable[[L], bool]) -> None:
        self._serves = serves
        self._lanes: dict[int, L] = {}
        self._places: dict[int, Key] = {}
        # For each lane a time before which it has no waiting job, in seconds since the epoch.
        self._heads: dict[int, float] = {}
        self._seen: dict[int, L] = {}
        self._is_hinted = False
        self._next_survey = 0.0
        self._patience = LOOK_AGAIN
        self._surveyed_at = float("-inf")
        self.next_due: float | None = None

    def survey_is_due(self, now: float) -> bool:
        return not self._places or now >= self._next_survey

    def surveyed(self, found: Sequence[L], now: float, took: float) -> None:
        """Take note of a survey that returned just now and took this many seconds."""
        mine = [lane for lane in found if self._serves(lane)]
        self._lanes = {lane.lane: lane for lane in mine if lane.due_in <= 0}
        self._places = dict.fromkeys(self._lanes, BEGINNING)
        self._heads = {lane.lane: lane.head for lane in self._lanes.values()}
        self._seen = dict(list((self._seen | self._lanes).items())[-MOST_REMEMBERED:])
        self._is_hinted = False
        waits = [lane.due_in for lane in mine if 0 < lane.due_in < NEVER]
        self.next_due = now + min(waits) if waits else None
        self._patience = max(LOOK_AGAIN, took * COST_SHARE)
        self._surveyed_at = now
        self._next_survey = now + self._patience
        if self.next_due is not None:
            self._next_survey = min(self._next_survey, self.next_due)

    def hint(self, now: float) -> None:
        """Something new may have come: look before long."""
        self._is_hinted = True
        soonest = self._surveyed_at + max(LOOK_SOON, self._patience - LOOK_AGAIN)
        self._next_survey = min(self._next_survey, max(now, soonest))

    def guess(self) -> list[tuple[int, datetime, UUID]]:
        """Return where a hint most likely points while there is no other work: where work was last.

        It saves a lone job the trip of a survey, which follows all the same. Where lanes of several
        urgencies were seen there is no guess: the most urgent job goes first.
        """
        if self._places or not self._is_hinted:
            return []
        self._is_hinted = False
        is_plain = len({lane.urgency for lane in self._seen.values()}) == 1
        if not is_plain or len(self._seen) > MOST_GUESSED:
            return []
        self._lanes = dict(self._seen)
        return [(lane, *BEGINNING) for lane in self._seen]

    def next(self) -> list[tuple[int, datetime, UUID]]:
        """Return where to claim next: the most urgent lanes with the oldest heads, and the place
        in each."""
        if not self._places:
            return []
        if len(self._places) == 1:
            ((lane, place),) = self._places.items()
            return [(lane, *place)]
        most = min(self._lanes[lane].urgency for lane in self._places)
        urgent = [lane for lane in self._places if self._lanes[lane].urgency == most]
        if len(urgent) > MOST_AT_ONCE:
            urgent = heapq.nsmallest(MOST_AT_ONCE, urgent, key=self._heads.__getitem__)
        return [(lane, *self._places[lane]) for lane in urgent]

    def seen(self, lane: int) -> L:
        """Return what a survey said of a lane that is being claimed from."""
        return self._lanes[lane]

    def took(
        self,
        asked: Sequence[tuple[int, datetime, UUID]],
        jobs: Sequence[TakenJob],
        limit: int,
        lane_of: Callable[[TakenJob], int | None],
    ) -> None:
        """Take note of a claim, the oldest job first: move on in its lanes, drop those run dry."""
        if len(jobs) < limit:
            for lane, *_ in asked:
                self._places.pop(lane, None)
        elif len(asked) == 1:
            self._move_on(asked[0][0], jobs[-1])
        else:
            for job in jobs:
                if (known := lane_of(job)) is not None:
                    self._move_on(known, job)

    def _move_on(self, lane: int, taken: TakenJob) -> None:
        self._places[lane] = max(self._places.get(lane, BEGINNING), _key(taken))
        self._heads[lane] = max(self._heads.get(lane, taken.due), taken.due)


def _key(job: TakenJob) -> Key:
    return job.scheduled_at, job.id
