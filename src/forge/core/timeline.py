"""The timeline of a job: everything that is known to have happened to it, in order."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple
from uuid import UUID

from forge.core.context import Auth
from forge.core.job import JobRecord
from forge.core.lifecycle import Status

# What a timeline shows at most: the newest of each.
MAX_ATTEMPTS = 100
MAX_LINES = 500
MAX_EVENTS = 50
# A trace may have 100 KB; all of them are with the attempts.
MAX_TRACES = 10

Row = Mapping[str, Any]


class EntryKind(StrEnum):
    """What happened; at one moment in this order."""

    DISPATCHED = "dispatched"
    CLAIMED = "claimed"
    STARTED = "started"
    PROGRESS = "progress"
    LOG = "log"
    FAILED = "failed"
    CRASHED = "crashed"
    RELEASED = "released"
    SNOOZED = "snoozed"
    RETRY = "retry"
    COMPLETED = "completed"
    ENDED = "ended"
    AUDIT = "audit"


_ORDER = {kind: place for place, kind in enumerate(EntryKind)}
# How attempts end that did not complete.
_ENDS = {
    "crashed": EntryKind.CRASHED,
    "lost": EntryKind.CRASHED,
    "released": EntryKind.RELEASED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineEntry:
    """One thing that happened to a job."""

    at: datetime
    kind: EntryKind
    message: str
    # The claim that it belongs to, its attempt, and the worker that made it.
    lease: int | None = None
    attempt: int | None = None
    worker_id: UUID | None = None
    detail: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """What happened to a job, oldest first."""

    job_id: UUID
    items: list[TimelineEntry]
    # Whether earlier attempts, lines or audit events are left out.
    truncated: bool


class History(NamedTuple):
    """The rows about a job, redacted; each list the newest first."""

    job: JobRecord
    attempts: Sequence[Row]
    lines: Sequence[Row]
    events: Sequence[Row]


def make_timeline(history: History) -> Timeline:
    """Put what is known of a job in order."""
    job, attempts = history.job, history.attempts[:MAX_ATTEMPTS]
    tries = {row["lease"]: row["attempt"] for row in attempts}
    if job.lease not in tries and job.status is not Status.PENDING:
        tries[job.lease] = job.attempts
    entries = [
        *_dispatched(job),
        *_of_attempts(attempts),
        *_of_current_claim(history),
        *_of_lines(history.lines[:MAX_LINES], tries),
        *_of_end(job),
        *map(_event, history.events[:MAX_EVENTS]),
    ]
    entries.sort(key=lambda entry: (entry.at, _ORDER[entry.kind]))
    return Timeline(
        job_id=job.id,
        items=entries,
        truncated=len(history.attempts) > MAX_ATTEMPTS
        or len(history.lines) > MAX_LINES
        or len(history.events) > MAX_EVENTS,
    )


def _dispatched(job: JobRecord) -> Iterator[TimelineEntry]:
    caller = Auth(job.auth) if isinstance(job.auth, dict) else Auth()
    due = job.original_scheduled_at or job.scheduled_at
    detail = {
        "by": caller.actor,
        "parent_id": job.parent_id,
        "retry_of": job.retry_of,
        "scheduled_at": due if due and due > job.created_at else None,
    }
    by = f" by {caller.actor}" if caller.actor else ""
    yield TimelineEntry(
        at=job.created_at,
        kind=EntryKind.DISPATCHED,
        message=f"dispatched{by}",
        detail=_given(detail),
    )


def _of_attempts(attempts: Iterable[Row]) -> Iterator[TimelineEntry]:
    for row in attempts:
        yield from _begun(row, row["attempt"], row["lease"])
        yield _ended_attempt(row)
        if row["outcome"] == Status.RETRY:
            yield TimelineEntry(
                at=row["ended_at"],
                kind=EntryKind.RETRY,
                message="will be retried",
                detail=_given({"due_at": row["retry_at"]}),
            )


def _begun(row: Row, attempt: int, lease: int) -> Iterator[TimelineEntry]:
    """Yield when a claim was made and its handler started."""
    for kind, at in (
        (EntryKind.CLAIMED, row["claimed_at"]),
        (EntryKind.STARTED, row["started_at"]),
    ):
        if at is not None:
            yield TimelineEntry(
                at=at,
                kind=kind,
                message=f"{kind} as attempt {attempt}",
                lease=lease,
                attempt=attempt,
                worker_id=row["worker_id"],
            )


def _ended_attempt(row: Row) -> TimelineEntry:
    kind = _ENDS.get(row["outcome"], EntryKind.FAILED)
    error = f"{row['exception'] or 'error'}: {row['error']}" if row["error"] else row["outcome"]
    names = ("outcome", "error_class", "exception", "error", "trace")
    return TimelineEntry(
        at=row["ended_at"],
        kind=kind,
        message="the worker stopped" if kind is EntryKind.RELEASED else error,
        lease=row["lease"],
        attempt=row["attempt"],
        worker_id=row["worker_id"],
        detail=_given({name: row[name] for name in names}),
    )


def _of_current_claim(history: History) -> Iterator[TimelineEntry]:
    """Yield the last claim, unless it has a record of its own."""
    job = history.job
    recorded = {row["lease"] for row in history.attempts}
    recorded |= {row["lease"] for row in history.lines if row["kind"] == EntryKind.SNOOZED}
    if job.lease == 0 or job.lease in recorded:
        return
    # A claim that was given back gave its attempt back, too.
    attempt = job.attempts + (job.status is Status.PENDING)
    of_claim = {"claimed_at": job.claimed_at, "started_at": job.started_at}
    yield from _begun(of_claim | {"worker_id": job.worker_id}, attempt, job.lease)
    if job.status is Status.COMPLETED and job.completed_at is not None:
        began = job.started_at
        seconds = None if began is None else (job.completed_at - began).total_seconds()
        yield TimelineEntry(
            at=job.completed_at,
            kind=EntryKind.COMPLETED,
            message=f"attempt {attempt} completed",
            lease=job.lease,
            attempt=attempt,
            worker_id=job.worker_id,
            detail=_given({"seconds": seconds}),
        )


def _of_lines(lines: Iterable[Row], tries: Mapping[int, int]) -> Iterator[TimelineEntry]:
    # Those of one moment in the order in which they were written.
    for row in sorted(lines, key=lambda row: (row["at"], row["number"])):
        lease = row["lease"]
        if row["kind"] == EntryKind.SNOOZED:
            yield from _snoozed(row)
        elif row["kind"] == EntryKind.PROGRESS:
            yield TimelineEntry(
                at=row["at"],
                kind=EntryKind.PROGRESS,
                message=row["message"] or "",
                lease=lease,
                attempt=tries.get(lease),
                detail=_given({"percent": row["percent"]}),
            )
        else:
            yield TimelineEntry(
                at=row["at"],
                kind=EntryKind.LOG,
                message=row["message"] or "",
                lease=lease,
                attempt=tries.get(lease),
                detail=_given({name: row[name] for name in ("level", "fields", "number")}),
            )


def _snoozed(row: Row) -> Iterator[TimelineEntry]:
    snooze: Mapping[str, Any] = row["fields"] if isinstance(row["fields"], dict) else {}
    worker = None if snooze.get("worker_id") is None else UUID(snooze["worker_id"])
    begun = {
        "worker_id": worker,
        "claimed_at": _moment(snooze.get("claimed_at")),
        "started_at": _moment(snooze.get("started_at")),
    }
    yield from _begun(begun, row["number"], row["lease"])
    yield TimelineEntry(
        at=row["at"],
        kind=EntryKind.SNOOZED,
        message="snoozed by its handler",
        lease=row["lease"],
        attempt=row["number"],
        worker_id=worker,
        detail=_given({"until": _moment(snooze.get("until"))}),
    )


def _of_end(job: JobRecord) -> Iterator[TimelineEntry]:
    at = job.completed_at or job.failed_at or job.cancelled_at
    if job.is_final and at is not None:
        yield TimelineEntry(
            at=at,
            kind=EntryKind.ENDED,
            message=f"the job ended as {job.status}",
            detail={"status": str(job.status)},
        )


def _event(row: Row) -> TimelineEntry:
    by = f" by {row['actor']}" if row["actor"] else ""
    names = ("event", "actor", "notes", "detail")
    return TimelineEntry(
        at=row["created_at"],
        kind=EntryKind.AUDIT,
        message=f"{row['event']}{by}",
        detail=_given({name: row[name] for name in names}),
    )


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
