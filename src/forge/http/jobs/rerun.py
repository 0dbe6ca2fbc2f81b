"""Run a final job again."""

from typing import Any
from uuid import UUID

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field

from forge.core.errors import InvalidPayload
from forge.core.lifecycle import FINAL, Status
from forge.core.new_job import LONGEST_REASON
from forge.http.auth.access import Caller, User
from forge.http.fields import AnyPriority, Delay, Name, WrittenTime
from forge.http.jobs.dispatch import is_kept_in_line, keep_in_line
from forge.http.jobs.pending_limit import admitted
from forge.http.jobs.read import row_of
from forge.http.middleware.json_route import AdmitFirst
from forge.http.problems.problem import Problem, faults_at, invalid, problems
from forge.jobs.rerun import RerunOptions, RerunRequest, check_rerun
from forge.jobs.rerun import rerun as run_again

router = APIRouter(tags=["jobs"], route_class=AdmitFirst)
OPTIONS = ("priority", "queue", "delay", "scheduled_at")


class RerunIn(BaseModel):
    """What differs in the new job."""

    model_config = ConfigDict(extra="forbid")

    patch: Any = Field(
        None,
        description="A JSON merge patch (RFC 7396) of the stored input; null leaves it as it is.",
        examples=[{"format": "pdf"}],
    )
    reason: str | None = Field(None, max_length=LONGEST_REASON)
    priority: AnyPriority | None = None
    queue: Name | None = None
    delay: Delay | None = Field(None, description="Instead of `scheduled_at`.")
    scheduled_at: WrittenTime | None = None
    dry_run: bool = Field(False, description="Check the request, and create nothing.")


class RerunOut(BaseModel):
    """The new job."""

    dry_run: bool
    job_id: UUID | None = Field(description="Null after a dry run.")
    status: Status
    retry_of: UUID = Field(description="The job that it does again.")
    watch_token: str | None = Field(
        description="Token to follow the new job for an hour at most; null after a dry run."
    )


@router.post(
    "/_api/jobs/{job_id}/rerun",
    status_code=202,
    operation_id="rerun_job",
    response_model=RerunOut,
    responses=problems(
        "forbidden", "priority_too_high", "not_found", "conflict", "invalid", "too_many"
    ),
)
async def rerun_job(
    request: Request, job_id: UUID, caller: User, body: RerunIn | None = None
) -> RerunOut:
    """Run a final job again, as a new job with the same input or a patched one."""
    row = await row_of(caller, job_id)
    if (status := Status(row["status"])) not in FINAL:
        raise Problem(
            "conflict",
            f"the job is {status}; only a final job can be run again, so cancel it first",
        )
    if row["job_type"].startswith("forge."):
        raise Problem("forbidden", "types in forge.* are Forge's own; send the request again")
    wanted = body or RerunIn()
    options = await _options(caller, row["job_type"], row["priority"], wanted)
    asked = RerunRequest(job_id, wanted.patch, wanted.reason, options, caller.tenant_id)
    try:
        if wanted.dry_run:
            await check_rerun(asked, caller.app.catalog, caller.run)
            return RerunOut(
                dry_run=True, job_id=None, status=Status.PENDING, retry_of=job_id, watch_token=None
            )
        async with admitted(request, caller, row["tenant_id"], 1):
            made = await run_again(asked, caller.app.catalog, caller.run)
    except InvalidPayload as error:
        raise invalid(faults_at("$.patch", error)) from None
    (await caller.app.session()).wake()
    token = request.app.state.watch_tokens.make(made, caller.identity)
    return RerunOut(
        dry_run=False,
        job_id=made,
        status=Status.PENDING,
        retry_of=job_id,
        watch_token=token.text,
    )


async def _options(
    caller: Caller, job_type: str, old_priority: int, wanted: RerunIn
) -> RerunOptions:
    """Return the options of the body, with the caller's identity instead of the old one."""
    given: Any = {name: value for name in OPTIONS if (value := getattr(wanted, name)) is not None}
    options: RerunOptions = given | {"auth": caller.identity.as_auth()}
    if is_kept_in_line(caller):
        known = (await caller.app.catalog.find(job_type, caller.run)).job_type
        keep_in_line(known, options)
        if "priority" not in options and old_priority > known.priority:
            options["priority"] = known.priority  # type: ignore[typeddict-item]
    return options
