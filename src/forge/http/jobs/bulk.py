"""Bulk actions on all jobs that match, such as cancel and rerun."""

from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Response
from pydantic import BaseModel, ConfigDict, Field

from forge.core.bulk import HIGHEST_RATE, MAX_IDS, BulkAction
from forge.core.job_content import MAX_INPUT_VALUES, MAX_LENGTH
from forge.core.job_counts import Precision
from forge.core.lifecycle import State, Status
from forge.core.new_job import LONGEST_REASON, DispatchOptions
from forge.core.payload_rules import Category
from forge.core.retry import ErrorClass
from forge.http.auth.access import Caller, Manager
from forge.http.fields import AnyPriority, BigInteger, Name, WrittenTime
from forge.http.jobs.paging import restrict
from forge.http.jobs.shapes import JobSummary
from forge.http.middleware.json_route import AdmitFirst
from forge.http.off_loop import off_loop
from forge.http.problems.problem import problems
from forge.jobs.bulk import BulkOptions, BulkRequest, BulkSelection
from forge.jobs.search import JobReader

router = APIRouter(tags=["jobs"], route_class=AdmitFirst)


class BulkFilter(BaseModel):
    """Conditions on jobs, as the query parameters of `GET /_api/jobs`; null means any."""

    model_config = ConfigDict(extra="forbid")

    status: Status | list[Status] | None = None
    state: State | None = None
    type: Name | None = None
    queue: Name | None = None
    priority: AnyPriority | None = None
    since: WrittenTime | None = Field(None, description="Created at or after.")
    until: WrittenTime | None = Field(None, description="Created before.")
    category: Category | None = None
    correlation_id: UUID | None = None
    parent_id: UUID | None = None
    retry_of: UUID | None = None
    tenant_id: BigInteger | None = Field(
        None, description="Must equal the token's tenant; operators may name any."
    )
    worker_id: UUID | None = None
    tag: Name | None = None
    error_class: ErrorClass | None = None
    idempotency_key: Name | None = None
    q: str | None = Field(
        None,
        min_length=1,
        max_length=MAX_LENGTH,
        description="Text in the input, the last error or the progress message, as shown.",
    )
    input: dict[str, str | int | float | bool | None] | None = Field(
        None,
        max_length=MAX_INPUT_VALUES,
        description="Values in the input, as shown, by path.",
        examples=[{"order_id": 42}],
    )


class BulkActionIn(BaseModel):
    """What to do with which jobs. Exactly one of `filter`, `ids` and `all` selects them."""

    model_config = ConfigDict(extra="forbid")

    action: BulkAction
    filter: BulkFilter | None = None
    ids: Annotated[list[UUID], Field(min_length=1, max_length=MAX_IDS)] | None = None
    all: bool = Field(False, description="All jobs that the action applies to.")
    priority: AnyPriority | None = Field(
        None, description="For `reprioritise`; for `rerun` that of the new jobs."
    )
    queue: Name | None = Field(None, description="For `move`; for `rerun` that of the new jobs.")
    rate: float | None = Field(
        None,
        gt=0,
        le=HIGHEST_RATE,
        description="Jobs per second; null goes as fast as ordinary jobs allow.",
    )
    reason: str = Field(
        min_length=1, max_length=LONGEST_REASON, description="Stored in the audit log."
    )
    dry_run: bool = Field(False, description="Count the jobs, show some, and change nothing.")


class BulkActionOut(BaseModel):
    """The built-in job that carries out the action."""

    job_id: UUID = Field(description="Follow it for the progress; cancel it to stop.")
    count: int
    precision: Precision = Field(
        description="`exact` among at most 20,000 jobs, else `at_least` or an `estimate`."
    )


class BulkPlanOut(BaseModel):
    """The jobs that the action would apply to."""

    count: int
    precision: Precision
    sample: list[JobSummary] = Field(description="Up to ten of them, the newest first.")


@router.post(
    "/_api/jobs/bulk",
    status_code=202,
    operation_id="bulk_jobs",
    response_model=BulkActionOut | BulkPlanOut,
    responses={
        **problems("invalid"),
        200: {"model": BulkPlanOut, "description": "After a dry run: nothing was changed."},
        202: {"model": BulkActionOut, "description": "A worker carries it out."},
    },
)
async def bulk_jobs(
    caller: Manager, body: BulkActionIn, response: Response
) -> BulkActionOut | BulkPlanOut:
    """Act on all jobs that match: a worker does so in slices, at the given rate.

    Only jobs that were created before the request are acted on, if they still match then.
    """
    wanted = _request(caller, body)
    actions = caller.app.bulk_actions
    reader = JobReader(caller.run, caller.run_over_all, caller.app.catalog, off_loop)
    if body.dry_run:
        response.status_code = 200
        plan = await actions.plan(wanted, reader)
        sample = [JobSummary.of(job) for job in plan.sample]
        return BulkPlanOut(count=plan.count, precision=plan.precision, sample=sample)
    counted = await actions.count(wanted, reader)
    auth = caller.identity.as_auth() | {"actor": caller.identity.name}
    options: DispatchOptions = {"auth": auth}
    if wanted.filter.tenant_id is not None:
        options["tenant_id"] = wanted.filter.tenant_id
    handle = await actions.request(wanted, counted, options)
    return BulkActionOut(job_id=handle.id, count=counted.count, precision=counted.precision)


def _request(caller: Caller, body: BulkActionIn) -> BulkRequest:
    """Return the request of the body, limited to the caller's tenant."""
    criteria: Any = None if body.filter is None else body.filter.model_dump()
    selection = BulkSelection.of(criteria, body.ids, body.all)
    options: Any = {name: getattr(body, name) for name in BulkOptions.__annotations__}
    wanted = BulkRequest.checked(body.action, selection, body.reason, options)
    limited = restrict(caller, wanted.filter)
    return wanted.model_copy(update={"filter": limited})
