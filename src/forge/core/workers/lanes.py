"""Which lanes a worker takes its next jobs from: what the last survey saw, and how far it got."""

import hashlib
import heapq
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Generic, Protocol, TypeVar
from uuid import UUID

# The cursor of a lane that was not claimed from yet. The driver sends this time as -infinity.
BEGINNING = (datetime.min.replace(tzinfo=UTC), UUID(int=0))
# How many lanes of one urgency a claim asks at most: each costs a step of the index.
MAX_AT_ONCE = 16
# Lanes remembered for a guess, and how many of them are worth one.
MAX_REMEMBERED = 64
MAX_GUESSED = 4
# Under load the whole queue is looked at this often, and never so often that looking costs more
# than a tenth of the time, however many dead rows an old snapshot makes it step over.
LOOK_AGAIN = 1.0
COST_SHARE = 10
# While there is other work, a notification is followed by a survey after this many seconds.
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
    """The lanes with work for this worker, and a cursor in each up to which jobs are taken.

    A claim looks only behind that place, so that it need not step over the dead rows that a long
    transaction elsewhere keeps in the index. What turns up before it, a released job or one that
    was committed late, is found by the next survey, which starts every lane from its beginning.

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
        self._is_notified = False
        self._next_survey = 0.0
        self._survey_pause = LOOK_AGAIN
        self._surveyed_at = float("-inf")
        self.next_due: float | None = None

    def survey_is_due(self, now: float) -> bool:
        return not self._places or now >= self._next_survey

    def surveyed(self, found: Sequence[L], now: float, took: float) -> None:
        """Record a survey that returned just now and took this many seconds."""
        mine = [lane for lane in found if self._serves(lane)]
        self._lanes = {lane.lane: lane for lane in mine if lane.due_in <= 0}
        self._places = dict.fromkeys(self._lanes, BEGINNING)
        self._heads = {lane.lane: lane.head for lane in self._lanes.values()}
        self._seen = dict(list((self._seen | self._lanes).items())[-MAX_REMEMBERED:])
        self._is_notified = False
        waits = [lane.due_in for lane in mine if 0 < lane.due_in < NEVER]
        self.next_due = now + min(waits) if waits else None
        self._survey_pause = max(LOOK_AGAIN, took * COST_SHARE)
        self._surveyed_at = now
        self._next_survey = now + self._survey_pause
        if self.next_due is not None:
            self._next_survey = min(self._next_survey, self.next_due)

    def notify(self, now: float) -> None:
        """Survey soon: there may be new work."""
        self._is_notified = True
        soonest = self._surveyed_at + max(LOOK_SOON, self._survey_pause - LOOK_AGAIN)
        self._next_survey = min(self._next_survey, max(now, soonest))

    def guess(self) -> list[tuple[int, datetime, UUID]]:
        """Return where a notification most likely points while there is no other work.

        It saves a lone job the trip of a survey, which follows all the same. Where lanes of several
        urgencies were seen there is no guess: the most urgent job goes first.
        """
        if self._places or not self._is_notified:
            return []
        self._is_notified = False
        is_plain = len({lane.urgency for lane in self._seen.values()}) == 1
        if not is_plain or len(self._seen) > MAX_GUESSED:
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
        if len(urgent) > MAX_AT_ONCE:
            urgent = heapq.nsmallest(MAX_AT_ONCE, urgent, key=self._heads.__getitem__)
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
        """Record a claim, the oldest job first: advance its lanes, and drop the empty ones."""
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


MAX_NAME_CHARS = 255


def worker_group_name(capabilities: Sequence[str], queues: Sequence[str] | None) -> str:
    """Name a worker group by its capabilities and, if it serves only some queues, by those.

    >>> worker_group_name(["media", "gpu"], None), worker_group_name([], ["mail"])
    ('gpu,media', 'any@mail')
    """
    name = ",".join(sorted(set(capabilities))) or "any"
    if queues is not None:
        name += "@" + ",".join(sorted(set(queues)))
    if len(name) <= MAX_NAME_CHARS:
        return name
    return f"{name[: MAX_NAME_CHARS - 17]}~{hashlib.sha256(name.encode()).hexdigest()[:16]}"


class Claims:
    """The claims that were sent and whose answers are not processed yet; times in seconds."""

    def __init__(self, dead_after: float) -> None:
        self.dead_after = dead_after
        self._sent_at: dict[int, float] = {}
        self._count = 0
        # Whether an answer was lost, so that the worker may own jobs that it does not know of.
        self.lost_any = False

    def send(self, now: float) -> int:
        """Record a claim that is sent, and return its number."""
        self._count += 1
        self._sent_at[self._count] = now
        return self._count

    def is_late(self, claim: int, now: float) -> bool:
        """Whether others may have declared the worker dead, and taken what it claimed."""
        return now - self._sent_at[claim] > self.dead_after

    def end(self, claim: int) -> None:
        """Forget a claim whose jobs are stored, or whose answer will never arrive."""
        del self._sent_at[claim]

    def any_since(self, moment: float) -> bool:
        """Whether a claim that was sent before this moment is still under way."""
        return any(sent_at <= moment for sent_at in self._sent_at.values())
