"""The lifecycle of a job: one table from which SQL, docs and types are generated."""

from collections.abc import Mapping
from enum import StrEnum


class Status(StrEnum):
    """Where a job stands."""

    PENDING = "pending"
    CLAIMED = "claimed"
    RUNNING = "running"
    COMPLETED = "completed"
    RETRY = "retry"
    FAILED = "failed"
    DEAD_LETTER = "dead_letter"
    CANCELLED = "cancelled"

    @property
    def is_final(self) -> bool:
        return self in FINAL

    @property
    def state(self) -> "State":
        return STATES[self]


class State(StrEnum):
    """The coarser view of a status that the outside world is shown beside it."""

    QUEUED = "queued"
    PROCESSING = "processing"
    COMPLETED = "completed"
    FAILED_RETRYABLE = "failed_retryable"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Verb(StrEnum):
    """What may be done to a job: one verb per transition."""

    CLAIM = "claim"
    START = "start"
    COMPLETE = "complete"
    RETRY = "retry"
    SNOOZE = "snooze"
    FAIL = "fail"
    BURY = "bury"
    RELEASE = "release"
    RESCUE = "rescue"
    CANCEL = "cancel"


LIFECYCLE: Mapping[tuple[Status, Verb], Status] = {
    (Status.PENDING, Verb.CLAIM): Status.CLAIMED,
    (Status.PENDING, Verb.CANCEL): Status.CANCELLED,
    (Status.RETRY, Verb.CLAIM): Status.CLAIMED,
    (Status.RETRY, Verb.FAIL): Status.FAILED,
    (Status.RETRY, Verb.BURY): Status.DEAD_LETTER,
    (Status.RETRY, Verb.CANCEL): Status.CANCELLED,
    (Status.CLAIMED, Verb.START): Status.RUNNING,
    (Status.CLAIMED, Verb.FAIL): Status.FAILED,
    (Status.CLAIMED, Verb.BURY): Status.DEAD_LETTER,
    (Status.CLAIMED, Verb.RELEASE): Status.PENDING,
    (Status.CLAIMED, Verb.RESCUE): Status.RETRY,
    (Status.CLAIMED, Verb.CANCEL): Status.CANCELLED,
    (Status.RUNNING, Verb.COMPLETE): Status.COMPLETED,
    (Status.RUNNING, Verb.RETRY): Status.RETRY,
    (Status.RUNNING, Verb.SNOOZE): Status.PENDING,
    (Status.RUNNING, Verb.FAIL): Status.FAILED,
    (Status.RUNNING, Verb.BURY): Status.DEAD_LETTER,
    (Status.RUNNING, Verb.RELEASE): Status.PENDING,
    (Status.RUNNING, Verb.RESCUE): Status.RETRY,
    (Status.RUNNING, Verb.CANCEL): Status.CANCELLED,
}

# Verbs that one statement may carry out together: a free slot starts what it claims,
# and a claim by id takes a dead owner's job without a stop in between.
AT_ONCE: tuple[tuple[Verb, ...], ...] = (
    (Verb.CLAIM, Verb.START),
    (Verb.RESCUE, Verb.CLAIM),
    (Verb.RESCUE, Verb.CLAIM, Verb.START),
)

FINAL = frozenset({Status.COMPLETED, Status.FAILED, Status.DEAD_LETTER, Status.CANCELLED})
WAITING = frozenset({Status.PENDING, Status.RETRY})
OWNED = frozenset({Status.CLAIMED, Status.RUNNING})

STATES: Mapping[Status, State] = {
    Status.PENDING: State.QUEUED,
    Status.CLAIMED: State.PROCESSING,
    Status.RUNNING: State.PROCESSING,
    Status.COMPLETED: State.COMPLETED,
    Status.RETRY: State.FAILED_RETRYABLE,
    Status.FAILED: State.FAILED,
    Status.DEAD_LETTER: State.FAILED,
    Status.CANCELLED: State.CANCELLED,
}

MEANINGS: Mapping[Status, str] = {
    Status.PENDING: "waiting for its time and a worker",
    Status.CLAIMED: "a worker owns it, not started",
    Status.RUNNING: "executing",
    Status.COMPLETED: "done; final",
    Status.RETRY: "an attempt failed; waits for `scheduled_at`",
    Status.FAILED: "failed for good, no dead letter wanted; final",
    Status.DEAD_LETTER: "failed for good and lies in the dead-letter store for review; final",
    Status.CANCELLED: "ended on request; final",
}


def allowed_moves() -> dict[tuple[Status, Status], set[int]]:
    """Every move that some verb, or some verbs at once, make, and by how much the lease grows."""
    moves: dict[tuple[Status, Status], set[int]] = {}
    for start in Status:
        moves.setdefault((start, start), set()).add(0)
        for verbs in [*((verb,) for verb in Verb), *AT_ONCE]:
            if (end := after(start, *verbs)) is not None:
                moves.setdefault((start, end), set()).add(verbs.count(Verb.CLAIM))
    return moves


def after(start: Status, *verbs: Verb) -> Status | None:
    """Where these verbs lead from `start`; None when one of them is forbidden on the way."""
    status: Status | None = start
    for verb in verbs:
        status = LIFECYCLE.get((status, verb)) if status else None
    return status
