"""The lifecycle of a job: the table from which SQL, docs and types are generated."""

from collections.abc import Mapping
from enum import StrEnum


class Status(StrEnum):
    """The status of a job."""

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
    """The coarser state that APIs return together with the status."""

    QUEUED = "queued"
    PROCESSING = "processing"
    COMPLETED = "completed"
    FAILED_RETRYABLE = "failed_retryable"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Verb(StrEnum):
    """The operations on a job: one verb per transition."""

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

# Verbs that one statement may perform together: a free slot starts the job it claims,
# and a claim by id takes over the job of a dead worker.
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
    Status.PENDING: "waiting for `scheduled_at` and a worker",
    Status.CLAIMED: "owned by a worker, not started",
    Status.RUNNING: "executing",
    Status.COMPLETED: "done; final",
    Status.RETRY: "an attempt failed; waiting for `scheduled_at`",
    Status.FAILED: "failed permanently, without a dead letter; final",
    Status.DEAD_LETTER: "failed permanently, with a dead letter for review; final",
    Status.CANCELLED: "ended on request; final",
}


def allowed_moves() -> dict[tuple[Status, Status], set[int]]:
    """Return the possible transitions of single and combined verbs, and how far the lease grows."""
    moves: dict[tuple[Status, Status], set[int]] = {}
    for start in Status:
        moves.setdefault((start, start), set()).add(0)
        for verbs in [*((verb,) for verb in Verb), *AT_ONCE]:
            if (end := after(start, *verbs)) is not None:
                moves.setdefault((start, end), set()).add(verbs.count(Verb.CLAIM))
    return moves


def after(start: Status, *verbs: Verb) -> Status | None:
    """Return the status after these verbs; None if one of them is not allowed."""
    status: Status | None = start
    for verb in verbs:
        status = LIFECYCLE.get((status, verb)) if status else None
    return status
