"""Record in the history what the database answered to this worker."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from uuid import UUID

from forge.core.events import AttemptEnded, AttemptRefused, Event, JobsRescued, WorkerNotice
from forge.store import jobs, messages, workers
from forge.store.statement import Rows, Statement
from forge.worker.job_source import JobAcker
from tests.faults.apps.reporting import history, report


def record_answers() -> None:
    """Record each claim, each accepted outcome and each missed heartbeat deadline."""
    worker, record = str(os.getpid()), history()
    complete, settle, reconcile = jobs.complete, jobs.settle, jobs.reconcile

    def claimed(claim: Callable[..., Any]) -> Any:
        def make(*args: Any, **options: Any) -> Statement[Any]:
            def write(taken: Any) -> None:
                for job in taken:
                    record.claimed(job.id, job.lease, worker)

            return _watched(claim(*args, **options), write)

        return make

    def accepted(statement_of: Callable[..., Any], status_of: Callable[[Any], str]) -> Any:
        def make(acks: Any) -> Statement[Any]:
            def write(ids: Any) -> None:
                for ack in acks:
                    if ack.id in ids:
                        record.accepted(ack.id, ack.lease, worker, status_of(ack))

            return _watched(statement_of(acks), write)

        return make

    def reconciled(*args: Any, **options: Any) -> Statement[Any]:
        return _watched(reconcile(*args, **options), lambda found: report("reconciled"))

    written_before = JobAcker._written_before

    async def known(acker: JobAcker, link: Any, missed: Any, act: str) -> set[UUID]:
        found = await written_before(acker, link, missed, act)
        for ack in missed:
            if ack.id in found and act in ("complete", "settle"):
                record.accepted(ack.id, ack.lease, worker, getattr(ack, "status", "completed"))
        return found

    beat, heard_at = workers.beat, time.monotonic()

    def beating(*args: Any, dead_after: float, **options: Any) -> Statement[Any]:
        sent_at = time.monotonic()

        def write(_: Any) -> None:
            nonlocal heard_at
            if time.monotonic() >= heard_at + dead_after:
                record.heard_again(worker, heard_at, heard_at + dead_after)
            heard_at = sent_at

        return _watched(beat(*args, dead_after=dead_after, **options), write)

    JobAcker._written_before = known  # type: ignore[method-assign]
    workers.beat = beating
    jobs.claim = claimed(jobs.claim)
    messages.claim = claimed(messages.claim)
    jobs.reconcile = reconciled
    jobs.complete = accepted(complete, lambda ack: "completed")
    jobs.settle = accepted(settle, lambda ack: str(ack.status))


def report_event(event: Event) -> None:
    """Report an event to the test; record ended attempts in the history too."""
    match event:
        case AttemptEnded():
            # For handlers whose process was killed before it could record the end.
            history().finished(event.job.id, event.job.lease, str(os.getpid()))
        case AttemptRefused(job_id, lease, act):
            report("refused", job=job_id, lease=lease, act=act)
        case JobsRescued(job_ids, workers):
            report("rescued", jobs=[str(job) for job in job_ids], workers=list(map(str, workers)))
        case WorkerNotice(level, message, detail):
            report("notice", level=level, message=message, detail=detail)


def _watched(statement: Statement[Any], write: Callable[[Any], None]) -> Statement[Any]:
    def read(found: Rows) -> Any:
        answer = statement.read(found)
        write(answer)
        return answer

    return replace(statement, read=read)
