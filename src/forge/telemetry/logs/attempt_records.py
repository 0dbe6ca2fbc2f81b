"""Adds the fields of the current attempt to log records of handlers."""

import logging
from contextvars import ContextVar
from typing import Any
from uuid import UUID

from forge.core.events import AttemptLost
from forge.core.job import Job
from forge.core.schedules.run import Run

# The job whose attempt runs in this context, including tasks and threads that it starts.
CURRENT_JOB: ContextVar[Job] = ContextVar("forge_current_job")


def current_job_id() -> UUID | None:
    """Return the job whose attempt runs in this context; None outside and in runs of schedules."""
    job = CURRENT_JOB.get(None)
    return None if job is None or isinstance(job, Run) else job.id


def job_fields(job: Job | AttemptLost) -> dict[str, Any]:
    """Return the fields that identify an attempt."""
    return {
        "job_id": job.id,
        "job_type": job.type,
        "attempt": job.attempt,
        "crashes": job.crashes,
        "tenant_id": job.tenant_id,
        "correlation_id": job.correlation_id,
    }


class AttemptFilter(logging.Filter):
    """Adds the fields of the attempt to records that do not have them."""

    def filter(self, record: logging.LogRecord) -> bool:
        job = CURRENT_JOB.get(None)
        if job is not None and not hasattr(record, "job_id"):
            record.__dict__ |= {k: v for k, v in job_fields(job).items() if not hasattr(record, k)}
        return True


def mark_records() -> None:
    """Make all handlers of the root logger add the fields, however they were configured."""
    for handler in logging.getLogger().handlers:
        if not any(isinstance(each, AttemptFilter) for each in handler.filters):
            handler.addFilter(AttemptFilter())
