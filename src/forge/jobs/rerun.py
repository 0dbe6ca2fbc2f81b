"""Run a final job again: a new job with the same input, or with a patched one."""

from datetime import datetime, timedelta
from typing import Any, NamedTuple, TypedDict
from uuid import UUID

from forge.core.context import Auth
from forge.core.duration import parse_duration
from forge.core.errors import InvalidValue, UndecodablePayload, UnknownJob
from forge.core.job import JobRecord, PriorityLike
from forge.core.merge_patch import merge_patch
from forge.core.new_job import check_dict, check_moment, check_name, check_reason, parse_priority
from forge.core.payload import encode
from forge.core.sensitive.shown import refuse_redacted
from forge.definitions.catalog import Catalog, RunStatement
from forge.definitions.edited_payload import OriginalPayload, checked_edit
from forge.store import jobs
from forge.store.jobs import RerunChanges


class RerunOptions(TypedDict, total=False):
    """What `rerun` takes beside the patch and the reason."""

    priority: PriorityLike
    queue: str
    scheduled_at: datetime
    delay: timedelta | str
    # Who dispatches it; without it the new job has the auth of the old one.
    auth: dict[str, Any]
    # The name in the audit log, if it is not that of `auth`.
    actor: str


class RerunRequest(NamedTuple):
    """A request to run a job again."""

    job_id: UUID
    # A JSON merge patch of the stored input; None leaves it as it is.
    patch: Any
    reason: str | None
    options: RerunOptions
    # Only a job of this tenant; None: of any.
    tenant_id: int | None = None


async def check_rerun(
    request: RerunRequest, catalog: Catalog, run: RunStatement
) -> tuple[JobRecord, RerunChanges]:
    """Return the final job and what differs in the new one, or raise what forbids it."""
    job = await _final_job(request, run)
    check_reason(request.reason)
    new_input = await _checked_input(job, request.patch, catalog, run)
    return job, changes_of(request.options)._replace(input=new_input)


async def rerun(request: RerunRequest, catalog: Catalog, run: RunStatement) -> UUID:
    """Create a new job of a final one, with an audit event, and return its id."""
    job, changes = await check_rerun(request, catalog, run)
    made = await run(
        jobs.rerun(
            [job.id],
            request.tenant_id,
            check_reason(request.reason),
            request.options.get("actor") or Auth(request.options.get("auth", {})).actor,
            changes,
        )
    )
    if not made:  # deleted in the meantime
        raise UnknownJob.of(job.id)
    return made[0].new_id


def changes_of(options: RerunOptions) -> RerunChanges:
    """Check the options of a rerun, or say what is allowed."""
    if unknown := options.keys() - RerunOptions.__annotations__.keys():
        allowed = ", ".join(RerunOptions.__annotations__)
        raise InvalidValue(f"rerun has no option {min(unknown)!r}; it takes {allowed}")
    if "scheduled_at" in options and "delay" in options:
        raise InvalidValue("a job has either scheduled_at or delay, not both; leave one out")
    priority, queue, auth = (options.get(name) for name in ("priority", "queue", "auth"))
    at, delay = options.get("scheduled_at"), options.get("delay")
    return RerunChanges(
        priority=None if priority is None else parse_priority(priority),
        queue=None if queue is None else check_name(queue, what="queue"),
        scheduled_at=None if at is None else check_moment(at, "scheduled_at"),
        delay=None if delay is None else parse_duration(delay, what="delay", allow_zero=True),
        auth=None if auth is None else encode(check_dict(auth, "auth"), what="auth"),
    )


async def _final_job(request: RerunRequest, run: RunStatement) -> JobRecord:
    found = await run(jobs.get([request.job_id]))
    if not found or request.tenant_id not in (None, found[0]["tenant_id"]):
        raise UnknownJob.of(request.job_id)
    job = JobRecord.from_row(found[0])
    if job.job_type.startswith("forge."):
        raise InvalidValue(f"{job.job_type} is a built-in type; send the request again instead")
    if not job.is_final:
        raise InvalidValue(
            f"job {job.id} is {job.status}, and only a final job can be run again; wait for its "
            "end, or cancel it first"
        )
    if "input" in job.undecodable:
        raise UndecodablePayload(
            f"the input of job {job.id} cannot be decoded; dispatch a new job instead"
        )
    return job


async def _checked_input(
    job: JobRecord, patch: Any, catalog: Catalog, run: RunStatement
) -> str | None:
    """Check the input of the new job; return it as JSON if it differs from the stored one."""
    if patch is None:
        (await catalog.find(job.job_type, run)).validate(job.input)
        return None
    refuse_redacted("the patch", patch)
    original = OriginalPayload(
        job.job_type,
        job.input,
        "job",
        job.idempotency_key or f"rerun_{job.id}",
        job.tenant_id,
        job.correlation_id,
    )
    return await checked_edit(catalog, original, merge_patch(job.input, patch), run)
