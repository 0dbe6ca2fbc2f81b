"""Requests about one job: the built-in type to dispatch and its checked input."""

from datetime import timedelta
from typing import Any
from uuid import UUID

from forge.builtin_jobs.definitions import (
    CANCEL,
    DELETE,
    MOVE,
    REPRIORITISE,
    REQUESTS,
    RESCHEDULE,
    RUN_NOW,
)
from forge.core.duration import parse_duration
from forge.core.errors import InvalidValue
from forge.core.job import BUILTIN_QUEUE, PriorityLike
from forge.core.new_job import (
    When,
    check_moment,
    check_name,
    check_reason,
    check_uuid,
    parse_priority,
)
from forge.definitions.job import JobDefinition

# The built-in type to dispatch, and its input.
Asked = tuple[JobDefinition[Any, Any], dict[str, Any]]


def cancelling(job_id: UUID | str, reason: str | None) -> Asked:
    """Return the request to cancel a job."""
    return _request(CANCEL, job_id, reason)


def deleting(job_id: UUID | str, reason: str | None) -> Asked:
    """Return the request to delete a job."""
    return _request(DELETE, job_id, reason)


def running_now(job_id: UUID | str, reason: str | None) -> Asked:
    """Return the request to make a job due."""
    return _request(RUN_NOW, job_id, reason)


def rescheduling(job_id: UUID | str, at: When, reason: str | None) -> Asked:
    """Return the request to give a job another time."""
    if isinstance(at, timedelta | str):
        delay = parse_duration(at, what="at", allow_zero=True)
        return _request(RESCHEDULE, job_id, reason, delay=delay.total_seconds())
    return _request(RESCHEDULE, job_id, reason, at=check_moment(at, "at").isoformat())


def reprioritising(job_id: UUID | str, priority: PriorityLike, reason: str | None) -> Asked:
    """Return the request to give a job another priority."""
    return _request(REPRIORITISE, job_id, reason, priority=parse_priority(priority))


def moving(job_id: UUID | str, queue: str, reason: str | None) -> Asked:
    """Return the request to move a job to another queue."""
    return _request(MOVE, job_id, reason, queue=check_target_queue(queue))


def check_target_queue(queue: object) -> str:
    """Refuse a queue that jobs cannot be moved to."""
    name = check_name(queue, what="queue")
    if name == BUILTIN_QUEUE:
        raise InvalidValue(
            f"the queue {BUILTIN_QUEUE!r} is for Forge's own jobs; name another queue"
        )
    return name


def _request(name: str, job_id: UUID | str, reason: str | None, **change: Any) -> Asked:
    input = {"job_id": str(check_uuid(job_id)), "reason": check_reason(reason)}
    return REQUESTS[name], input | change
