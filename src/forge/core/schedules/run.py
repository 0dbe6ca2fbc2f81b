"""One run of a schedule, and the one pure function that decides what becomes of its row."""

from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from forge.core.duration import MAX_DURATION
from forge.core.errors import InvalidValue
from forge.core.job import Job
from forge.core.lifecycle import Status
from forge.core.new_job import check_moment
from forge.core.outcome import (
    MAX_LOSSES,
    Ack,
    Completion,
    Crashed,
    Expired,
    Failure,
    Outcome,
    Raised,
    Released,
    Returned,
    Settlement,
    Snoozed,
)
from forge.core.payload import decode, encode
from forge.core.retry import Retry, retry_delay
from forge.core.schedules.record import ScheduleRecord
from forge.core.schedules.rule import Rule, following_tick, is_missed, jittered

# No queue has this name: it distinguishes the lanes of schedules from those of jobs.
NO_QUEUE = ""
FIRST_BACKOFF = 60.0
LONGEST_BACKOFF = 3600.0


class Run(Job):
    """A run as the worker that claimed it knows it: a job whose row is a schedule."""

    schedule: ScheduleRecord

    @property
    def planned(self) -> datetime:
        """When it was due, to the microsecond."""
        return self.schedule.next_run_at or self.schedule.created_at

    @property
    def tick(self) -> datetime:
        """The tick that it represents, or that follows it if it runs out of turn."""
        return self.schedule.tick_at or self.planned

    @property
    def started(self) -> datetime:
        return self.schedule.running_since or self.planned


class Conclusion(NamedTuple):
    """What a run came to, in the order of schedules/conclude's parameters."""

    id: UUID
    lease: int
    due: datetime
    next_at: datetime | None
    delay: float | None
    tick_at: datetime | None
    # None: nothing was begun, and nothing is recorded.
    outcome: str | None
    error: str | None = None
    checkpoint: str | None = None
    message: str | None = None


def make_run(
    row: ScheduleRecord, payload: str, checkpoint: str | None, default: Rule | None = None
) -> Run:
    """Make the run of a schedule that was claimed just now; JSON is given as text, too."""
    due = row.next_run_at or row.created_at
    rule = rule_of(row, default)
    started = row.running_since or due
    run = Run(
        id=row.id,
        lease=row.lease,
        type=row.type,
        input=payload,
        attempt=row.consecutive_failures + 1,
        max_attempts=row.consecutive_failures + 1,
        due=due.timestamp(),
        crashes=row.crashes,
        lone_crashes=0,
        is_suspect=row.suspect,
        queue=NO_QUEUE,
        worker_capability=row.worker_capability,
        priority=row.priority,
        timeout=row.timeout,
        expired=is_missed(rule, row.tick_at or due, due, started),
        tenant_id=row.tenant_id,
        checkpoint=checkpoint,
    )
    run.schedule = row
    return run


def rule_of(row: ScheduleRecord, default: Rule | None) -> Rule:
    """Return a row's own rule, or that of its type where it has none."""
    own = row.rule
    if own.has_ticks or default is None:
        return own
    return Rule(default.every, default.cron, default.tz, own.missed, own.jitter)


def conclude(
    run: Run,
    outcome: Outcome,
    *,
    rule: Rule,
    retry: Retry | None,
    seconds: float,
    chance: float,
) -> Conclusion:
    """Decide what becomes of a schedule whose run had this outcome after this many seconds."""
    match outcome:
        case Returned(output):
            return _succeeded(run, rule, output, seconds)
        case Raised(failure) if failure.is_loss and run.crashes < MAX_LOSSES:
            return _lost(run, failure, chance)
        case Raised(failure):
            return _failed(run, rule, failure, "failed", retry, seconds, chance)
        case Crashed(how):
            failure = Failure("forge.Crashed", f"its process died while it ran: {how}", "")
            return _failed(run, rule, failure, "crashed", retry, seconds, chance)
        case Snoozed(delay):
            return _plan(run, "snoozed", None, delay.total_seconds(), run.tick)
        case Expired():
            return _on_tick(run, rule, "skipped", seconds)
        case Released(has_begun):
            record = "released" if has_begun else None
            return _plan(run, record, run.planned, None, run.schedule.tick_at)


def write_next(value: object) -> str | None:
    """Write down when a handler wants to run next: a moment, a span, or None for the rule."""
    if value is None:
        return None
    if isinstance(value, timedelta) and timedelta(0) <= value <= MAX_DURATION:
        return encode({"after": value.total_seconds()})
    try:
        return encode({"at": check_moment(value, "it").isoformat()})
    except InvalidValue:
        raise InvalidValue(
            f"a schedule's handler returned {value!r}; return a datetime with a time zone, a "
            "timedelta of zero or more, or None for the schedule's own rule"
        ) from None


def as_ack(run: Run, conclusion: Conclusion) -> Ack:
    """Return the end of a run as that of a job, for the listeners of events."""
    match conclusion.outcome:
        case "completed":
            return Completion(run.id, run.lease, None)
        case "failed" | "crashed" | "lost":
            status = Status.RETRY
        case _:
            status = Status.PENDING
    return Settlement(
        run.id, run.lease, "running", status, conclusion.delay, outcome=conclusion.outcome
    )


def _succeeded(run: Run, rule: Rule, output: str | None, seconds: float) -> Conclusion:
    new_job: dict[str, Any] = {} if output is None else decode(output)
    if "at" in new_job:
        return _plan(run, "completed", datetime.fromisoformat(new_job["at"]), None, None)
    if "after" in new_job:
        return _plan(run, "completed", None, new_job["after"], None)
    return _on_tick(run, rule, "completed", seconds)


def _lost(run: Run, failure: Failure, chance: float) -> Conclusion:
    delay = Retry().seconds_after(run.crashes + 1) * (1 + chance / 10)
    error = f"{failure.exception}: {failure.message}"
    return _plan(run, "lost", None, delay, run.tick)._replace(error=error)


def _failed(
    run: Run,
    rule: Rule,
    failure: Failure,
    outcome: str,
    retry: Retry | None,
    seconds: float,
    chance: float,
) -> Conclusion:
    error = f"{failure.exception}: {failure.message}"
    if failure.is_final and rule.has_ticks:
        return _on_tick(run, rule, outcome, seconds)._replace(error=error)
    delay = _backoff(run, rule, failure, retry, seconds, chance)
    return _plan(run, outcome, None, delay, run.tick)._replace(error=error)


def _backoff(
    run: Run, rule: Rule, failure: Failure, retry: Retry | None, seconds: float, chance: float
) -> float:
    """A minute, two, four …, to an hour, or to the next tick where that is later still."""
    has_delay = failure.retry_after is not None or failure.error_class == "rate_limited"
    if retry is not None or has_delay:
        return retry_delay(
            run.attempt,
            declared=retry,
            error_class=failure.error_class,
            retry_after=failure.retry_after,
            chance=chance,
        )
    first = FIRST_BACKOFF if rule.every is None else min(FIRST_BACKOFF, rule.every.total_seconds())
    ended = run.started + timedelta(seconds=seconds)
    tick = rule.next_tick(run.tick, after=ended)
    until_tick = 0.0 if tick is None else (tick - ended).total_seconds()
    delay = first * 2.0 ** min(run.attempt - 1, 40) * (1 + 0.1 * chance)
    return min(delay, max(LONGEST_BACKOFF, until_tick))


def _on_tick(run: Run, rule: Rule, outcome: str, seconds: float) -> Conclusion:
    ended = run.started + timedelta(seconds=seconds)
    tick = following_tick(rule, run.tick, run.started, ended)
    if tick is None:
        return _plan(run, outcome, None, None, None)
    due = jittered(rule, run.schedule.name, tick)
    return _plan(run, outcome, due, None, None if due == tick else tick)


def _plan(
    run: Run,
    outcome: str | None,
    next_at: datetime | None,
    delay: float | None,
    tick: datetime | None,
) -> Conclusion:
    return Conclusion(run.id, run.lease, run.planned, next_at, delay, tick, outcome)
