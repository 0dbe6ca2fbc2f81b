"""The outcomes of an attempt, and the one pure function that decides what each means."""

import hashlib
from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple
from uuid import UUID

from forge.core.job import Job
from forge.core.lifecycle import Status
from forge.core.retry import Retry, retry_delay


def fingerprint(
    job_type: str, category: str | None, error_class: str | None, exception: str, place: str
) -> str:
    """Name a cause by its type and category, its class, its exception and its place in the code.

    The category of a type may change: lists by category find letters by their fingerprints.

    >>> fingerprint("mail", None, None, "ValueError", "shop.mail:send")
    'cb7cfd8948a9cafc'
    """
    cause = "\0".join((job_type, category or "", error_class or "", exception, place))
    return hashlib.sha256(cause.encode("utf-8", "replace")).hexdigest()[:16]


class Returned(NamedTuple):
    """The handler returned; its output is encoded already."""

    output: str | None


class Failure(NamedTuple):
    """What is known of an error: plain text only, since it may come from another process."""

    exception: str
    message: str
    trace: str
    error_class: str | None = None
    retry_after: timedelta | None = None
    place: str = ""
    # Whether it failed because of the database: no fault of the handler's.
    is_loss: bool = False
    # Whether that depends on whether the database accepts writes.
    is_loss_if_read_only: bool = False

    @property
    def is_final(self) -> bool:
        return self.error_class == "non_retryable"


class Raised(NamedTuple):
    """The handler raised, ran out of time, or returned what cannot be stored."""

    failure: Failure


class Snoozed(NamedTuple):
    """The handler wants to be called again later."""

    delay: timedelta


class Expired(NamedTuple):
    """The job is obsolete: its `expires_at` passed before it ran."""


class Crashed(NamedTuple):
    """The process that ran this job, and nothing else, died."""

    how: str


class Released(NamedTuple):
    """The worker stops before the job is done, or before it was begun."""

    has_begun: bool = False


class Settled(NamedTuple):
    """The handler committed the completion itself, or was cancelled; its output may follow."""

    output: str | None = None


Outcome = Returned | Raised | Snoozed | Expired | Crashed | Released


@dataclass(frozen=True, slots=True)
class Policy:
    """How a job type handles failures."""

    retry: Retry | None
    dead_letter: bool
    crash_limit: int


class Completion(NamedTuple):
    """running -> completed."""

    id: UUID
    lease: int
    output: str | None
    # Needed where the database refuses the output (then this attempt has failed), and to count it,
    # with its start by the worker's monotonic clock (None if its wait is counted) and duration.
    job: Job | None = None
    began: float | None = None
    seconds: float = 0.0


class Settlement(NamedTuple):
    """Any other end of an attempt, in the order of jobs/settle's parameters."""

    id: UUID
    lease: int
    allowed: str
    status: Status
    delay: float | None = None
    given_back: int = 0
    crashes: int = 0
    lone_crashes: int = 0
    error_class: str | None = None
    exception: str | None = None
    message: str | None = None
    trace: str | None = None
    outcome: str | None = None
    fingerprint: str | None = None
    place: str | None = None


Ack = Completion | Settlement
# How many attempts at a job are given back because the database went away: a statement that crashes
# the server every time has to end.
MAX_LOSSES = 10


def settle(
    job: Job,
    outcome: Outcome,
    policy: Policy,
    chance: float,
    seconds: float = 0.0,
    began: float | None = None,
) -> Ack:
    """Decide what becomes of a job whose attempt came to this outcome."""
    if isinstance(outcome, Returned):  # nearly always, and quicker than a match
        return Completion(job.id, job.lease, outcome.output, job, began, seconds)
    match outcome:
        case Raised(failure) if failure.is_loss and job.crashes < MAX_LOSSES:
            return _lost(job, _classed(job, failure), chance)
        case Raised(failure) if failure.is_final or not job.has_attempts:
            return _ended(job, _classed(job, failure), policy)
        case Raised(failure):
            return _retried(job, _classed(job, failure), policy, chance)
        case Snoozed(delay):
            return Settlement(
                job.id, job.lease, "running", Status.PENDING, delay.total_seconds(), given_back=1
            )
        case Expired():
            return _ended(job, EXPIRED, policy)
        case Crashed(how):
            return _crashed(job, how, policy, chance)
        case Released(has_begun):
            return released(job.id, job.lease, has_begun=has_begun)


def released(job_id: UUID, lease: int, *, has_begun: bool = False) -> Settlement:
    """Give a claim back, and its attempt with it, which is recorded where it had begun."""
    unbegun = Settlement(job_id, lease, "claimed running", Status.PENDING, given_back=1)
    return unbegun._replace(crashes=1, outcome="released") if has_begun else unbegun


EXPIRED = Failure("forge.Expired", "expired before it could run", "", error_class="non_retryable")


def _classed(job: Job, failure: Failure) -> Failure:
    """Give a failure its class: in a job with a category one that says nothing may be retried."""
    if failure.error_class is not None or job.category is None:
        return failure
    return failure._replace(error_class="retryable")


def _retried(job: Job, failure: Failure, policy: Policy, chance: float) -> Settlement:
    delay = retry_delay(
        job.attempt,
        declared=policy.retry,
        error_class=failure.error_class,
        retry_after=failure.retry_after,
        chance=chance,
    )
    return _recorded(job, failure, Status.RETRY, delay)


def _ended(job: Job, failure: Failure, policy: Policy) -> Settlement:
    status = Status.DEAD_LETTER if policy.dead_letter else Status.FAILED
    return _recorded(job, failure, status)


def _recorded(job: Job, failure: Failure, status: Status, delay: float | None = None) -> Settlement:
    return Settlement(
        job.id,
        job.lease,
        "running",
        status,
        delay,
        error_class=failure.error_class,
        exception=failure.exception,
        message=failure.message,
        trace=failure.trace,
        outcome=status,
        fingerprint=fingerprint(
            job.type, job.category, failure.error_class, failure.exception, failure.place
        ),
        place=failure.place,
    )


def _lost(job: Job, failure: Failure, chance: float) -> Settlement:
    delay = Retry().seconds_after(job.crashes + 1) * (1 + chance / 10)
    settlement = _recorded(job, failure, Status.RETRY, delay)
    return settlement._replace(given_back=1, crashes=1, outcome="lost")


def _crashed(job: Job, how: str, policy: Policy, chance: float) -> Settlement:
    """Give the attempt back until the job has crashed too often while it ran alone."""
    is_poison = job.lone_crashes + 1 >= policy.crash_limit
    failure = Failure("forge.Crashed", f"its process died while it ran alone: {how}", "", place=how)
    settlement = (
        _ended(job, failure, policy)
        if is_poison
        else _recorded(
            job,
            failure,
            Status.RETRY,
            Retry().seconds_after(job.lone_crashes + 1) * (1 + chance / 10),
        )
    )
    return settlement._replace(given_back=1, crashes=1, lone_crashes=1, outcome="crashed")
