"""Dispatch over HTTP: one job, or many that are made together or not at all."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, TypeVar
from uuid import UUID

from fastapi import APIRouter, Request

from forge.core.errors import Fault, InvalidPayload
from forge.core.job_type import JobType
from forge.core.lifecycle import Status
from forge.core.new_job import DispatchOptions, NewJob, make_new_job, parse_priority
from forge.core.trace_context import valid_traceparent
from forge.definitions.input_encoder import InputEncoder
from forge.http.auth.access import Caller, Identity, Role, User
from forge.http.jobs.pending_limit import admitted
from forge.http.jobs.shapes import (
    DispatchBody,
    DispatchIn,
    DispatchManyIn,
    DispatchManyOut,
    DispatchOut,
)
from forge.http.middleware.json_route import JsonRoute
from forge.http.off_loop import off_loop
from forge.http.problems.problem import Problem, faults_at, invalid, problems
from forge.jobs.prepare import prepare, prepare_many
from forge.jobs.rerun import RerunOptions
from forge.store import jobs
from forge.store.jobs import Dispatched

router = APIRouter(tags=["jobs"], route_class=JsonRoute)
REFUSED = problems(
    "bad_request",
    "forbidden",
    "priority_too_high",
    "unknown_job_type",
    "too_large",
    "unsupported_media_type",
    "invalid",
    "too_many",
)
T = TypeVar("T")
# How many bad inputs are named in a refusal.
MAX_BAD_INPUTS = 20


@router.post(
    "/_api/jobs/{job_type:path}/dispatch",
    status_code=202,
    operation_id="dispatch_job",
    response_model=DispatchOut,
    responses=REFUSED,
)
async def dispatch_job(
    request: Request, job_type: str, caller: User, body: DispatchIn | None = None
) -> DispatchOut:
    """Dispatch one job."""
    encoder = await _find_encoder(caller, job_type)
    wanted = body or _NOTHING
    try:
        async with admitted(request, caller, caller.tenant_for(wanted.tenant_id), 1):
            made = await _dispatch(request, caller, encoder, wanted)
    except InvalidPayload as error:
        raise invalid(faults_at("$.args", error)) from None
    return DispatchOut.model_construct(
        job_id=made.id,
        status=Status.PENDING if made.is_new else await _status(caller, made.id),
        deduplicated=not made.is_new,
        watch_token=request.app.state.watch_tokens.make(made.id, caller.identity).text,
    )


@router.post(
    "/_api/jobs/{job_type:path}/dispatch_many",
    status_code=202,
    operation_id="dispatch_jobs",
    response_model=DispatchManyOut,
    responses=REFUSED,
)
async def dispatch_jobs(
    request: Request, job_type: str, caller: User, body: DispatchManyIn
) -> DispatchManyOut:
    """Dispatch one job per input, all or none."""
    encoder = await _find_encoder(caller, job_type)
    options = _options(caller, encoder, body)
    if not body.inputs:
        return DispatchManyOut(count=0)
    size, trace = len(await request.body()), valid_traceparent(request.headers.get("traceparent"))
    statement = await off_loop(
        size, prepare_many, encoder, body.inputs, options, _check_each, trace
    )
    tenant = caller.tenant_for(body.tenant_id)
    async with admitted(request, caller, tenant, len(body.inputs)):
        made = await caller.app.dispatcher.insert_many(statement, caller.run)
    return DispatchManyOut(count=sum(job.is_new for job in made))


_NOTHING = DispatchIn()


def _options(caller: Caller, encoder: InputEncoder, wanted: DispatchBody) -> DispatchOptions:
    """Return the options of the body, with the caller's tenant and identity."""
    options: Any = {
        name: value
        for name in wanted.model_fields_set
        if name not in ("args", "inputs") and (value := getattr(wanted, name)) is not None
    }
    if (tenant := caller.tenant_for(options.get("tenant_id"))) is not None:
        options["tenant_id"] = tenant
    options["auth"] = caller.identity.as_auth()
    if is_kept_in_line(caller):
        keep_in_line(encoder.job_type, options)
    return options  # type: ignore[no-any-return]


def is_kept_in_line(caller: Caller) -> bool:
    """Whether a caller's jobs may not go before the others of their type."""
    is_staff = Role.STAFF in caller.identity.roles
    return not is_staff and caller.app.config.server.priorities == "type"


def keep_in_line(job_type: JobType, options: DispatchOptions | RerunOptions) -> None:
    """Refuse a higher priority than the type's, and a place before the jobs that wait already."""
    asked = options.get("priority")
    if asked is not None and parse_priority(asked) > job_type.priority:
        raise Problem(
            "priority_too_high",
            f"priority {asked!r} is above {job_type.priority}, the priority of {job_type.name}; "
            "leave it out, or use a token with the role staff "
            '([server] priorities = "any" allows it to every caller)',
        )
    due = options.get("scheduled_at")
    # Jobs of one priority run in the order of their times.
    if due is not None and due <= datetime.now(UTC):
        del options["scheduled_at"]


async def _find_encoder(caller: Caller, job_type: str) -> InputEncoder:
    if job_type.startswith("forge."):
        raise Problem(
            "forbidden",
            "types in forge.* are Forge's own; use the routes that make them, such as "
            "POST /_api/jobs/{job_id}/cancel",
        )
    return await caller.app.catalog.find(job_type, caller.run)


async def _dispatch(
    request: Request, caller: Caller, encoder: InputEncoder, wanted: DispatchIn
) -> Dispatched:
    """Check the input of a request and insert its job."""
    size, trace = len(await request.body()), valid_traceparent(request.headers.get("traceparent"))
    if wanted.model_fields_set <= {"args"}:
        options, checked = _plain_options(encoder.job_type, caller.identity)
    else:
        options, checked = _options(caller, encoder, wanted), None
    job = await off_loop(size, prepare, encoder, wanted.args, options, trace, checked)
    # The room that was granted is for the next job: nothing may be awaited before the insert.
    batcher = await caller.app.dispatcher.batcher()
    return await batcher.insert(job, caller.tenant_id)


@lru_cache(maxsize=1000)
def _plain_options(job_type: JobType, identity: Identity) -> tuple[DispatchOptions, NewJob | None]:
    """Check the options of a request that gives only the input, the most frequent one."""
    options: DispatchOptions = {"auth": identity.as_auth()}
    if identity.tenant_id is not None:
        options["tenant_id"] = identity.tenant_id
    return options, make_new_job(job_type, options)


async def _status(caller: Caller, job_id: UUID) -> Status | None:
    """Return where the job stands that a key has stood for since; None when it was pruned."""
    found = await caller.run(jobs.get([job_id]))
    return Status(found[0]["status"]) if found else None


def _check_each(check: Callable[[Any], T], inputs: Sequence[Any], /) -> list[T]:
    """Check inputs one by one; refuse all of them with the faults of the first bad ones."""
    checked: list[T] = []
    faults: list[Fault] = []
    bad = 0
    for place, value in enumerate(inputs):
        try:
            checked.append(check(value))
        except InvalidPayload as error:
            faults += faults_at(f"$.inputs[{place}]", error)
            bad += 1
            if bad == MAX_BAD_INPUTS:
                break
    if faults:
        raise invalid(faults)
    return checked
