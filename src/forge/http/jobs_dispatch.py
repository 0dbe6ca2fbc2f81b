"""Dispatch over HTTP: one job, or many that are made together or not at all."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, TypeVar
from uuid import UUID

from fastapi import APIRouter, Request

from forge import dispatch as dispatching
from forge.core.errors import Fault, InvalidPayload
from forge.core.key import is_keyed
from forge.core.lifecycle import Status
from forge.core.rules import version_in
from forge.core.wish import (
    FIRST_VERSION,
    Options,
    TypeDefaults,
    Wish,
    make_wish,
    parse_priority,
)
from forge.http.access import Caller, User
from forge.http.described import problems
from forge.http.gathering import Gatherer
from forge.http.identity import Identity, Role
from forge.http.json_route import JsonRoute
from forge.http.off_loop import off_loop
from forge.http.pending_limit import PendingLimit
from forge.http.problem import Problem, faults_at, invalid
from forge.http.shapes import (
    DispatchIn,
    DispatchManyIn,
    DispatchManyOut,
    DispatchOptions,
    DispatchOut,
)
from forge.http.tracing import in_trace, traceparent_of
from forge.job_type import JobType
from forge.store import jobs
from forge.store.jobs import Dispatched
from forge.store.statement import Statement
from forge.waker import MANY

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
MOST_BAD_INPUTS = 20


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
    """Ask for one call of a job."""
    kind = await _kind(caller, job_type)
    wanted = body or _NOTHING
    try:
        async with _admitted(request, caller, wanted, 1):
            made = await _one(request, caller, kind, wanted)
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
    """Ask for one call per input: all are dispatched, or none."""
    kind = await _kind(caller, job_type)
    options = in_trace(request, job_type, _options(caller, kind, body))
    if not body.inputs:
        return DispatchManyOut(count=0)
    statement = await off_loop(await _size(request), _many, kind, body.inputs, options)
    async with _admitted(request, caller, body, len(body.inputs)):
        made = await caller.run(statement)
    (await caller.app.session()).wake(MANY)
    return DispatchManyOut(count=sum(job.is_new for job in made))


_NOTHING = DispatchIn()
_UNLIMITED: AbstractAsyncContextManager[None] = nullcontext()


def _admitted(
    request: Request, caller: Caller, wanted: DispatchOptions, count: int
) -> AbstractAsyncContextManager[None]:
    """Hold room for so many jobs of a tenant while they are written, where there is a limit."""
    limit: PendingLimit | None = request.app.state.pending_limit
    if limit is None:
        return _UNLIMITED
    return limit.admitted(caller, caller.tenant_meant(wanted.tenant_id), count)


def _options(caller: Caller, kind: JobType, wanted: DispatchOptions) -> Options:
    """Return what is asked for, for the caller's tenant and in the caller's name."""
    options: Any = {
        name: value
        for name in wanted.model_fields_set
        if name not in ("args", "inputs") and (value := getattr(wanted, name)) is not None
    }
    if (tenant := caller.tenant_meant(options.get("tenant_id"))) is not None:
        options["tenant_id"] = tenant
    options["auth"] = caller.identity.as_auth()
    if Role.STAFF not in caller.identity.roles and caller.app.config.server.priorities == "type":
        _keep_in_line(kind.defaults, options)
    return options  # type: ignore[no-any-return]


def _keep_in_line(kind: TypeDefaults, options: Options) -> None:
    """Refuse a higher priority than the type's, and a place before the jobs that wait already."""
    asked = options.get("priority")
    if asked is not None and parse_priority(asked) > kind.priority:
        raise Problem(
            "priority_too_high",
            f"priority {asked!r} is above {kind.priority}, the priority of {kind.name}; leave it "
            'out, or use a token with the role staff ([server] priorities = "any" allows it to '
            "every caller)",
        )
    due = options.get("scheduled_at")
    # Jobs of one priority run in the order of their times.
    if due is not None and due <= datetime.now(UTC):
        del options["scheduled_at"]


async def _kind(caller: Caller, job_type: str) -> JobType:
    if job_type.startswith("forge."):
        raise Problem(
            "forbidden",
            "types in forge.* are Forge's own; use the routes that make them, such as "
            "POST /_api/jobs/{job_id}/cancel",
        )
    return await caller.app._catalog.find(job_type, caller.run)


async def _one(request: Request, caller: Caller, kind: JobType, wanted: DispatchIn) -> Dispatched:
    wish = _wish(caller, kind, wanted)
    name = kind.defaults.name
    if wish is not None:
        if (trace := traceparent_of(request, name)) is not None:
            wish = wish._replace(traceparent=trace)
        text = await off_loop(await _size(request), kind.written, wanted.args)
        if version_in(text) not in (None, FIRST_VERSION):
            return await _alone(request, caller, kind, wanted)
        return Dispatched(await _gatherer(request).dispatch(caller, wish, text), True)
    return await _alone(request, caller, kind, wanted)


async def _alone(request: Request, caller: Caller, kind: JobType, wanted: DispatchIn) -> Dispatched:
    """Dispatch a job that needs more than the insert that many share."""
    options = in_trace(request, kind.defaults.name, _options(caller, kind, wanted))
    size = await _size(request)
    (made,) = await caller.run(await off_loop(size, dispatching.one, kind, wanted.args, options))
    (await caller.app.session()).wake()
    return made


def _wish(caller: Caller, kind: JobType, wanted: DispatchIn) -> Wish | None:
    """Return what can be dispatched along with others; None for a job that needs more than that."""
    if wanted.model_fields_set <= {"args"}:
        wish = _plain_wish(kind.defaults, caller.identity)
    else:
        wish = make_wish(kind.defaults, _options(caller, kind, wanted))
    has_rules = wish.category is not None or is_keyed(kind.defaults, wanted.idempotency_key)
    return wish if not has_rules and jobs.fits_each(wish) else None


@lru_cache(maxsize=1000)
def _plain_wish(defaults: TypeDefaults, identity: Identity) -> Wish:
    """Make the wish of somebody who gives nothing but the input, the most frequent there is."""
    options: Options = {"auth": identity.as_auth()}
    if identity.tenant_id is not None:
        options["tenant_id"] = identity.tenant_id
    return make_wish(defaults, options)


def _gatherer(request: Request) -> Gatherer:
    state = request.app.state
    if not hasattr(state, "gatherer"):
        state.gatherer = Gatherer()
    return state.gatherer  # type: ignore[no-any-return]


async def _status(caller: Caller, job_id: UUID) -> Status | None:
    """Return where the job stands that a key has stood for since; None when it was pruned."""
    found = await caller.run(jobs.get([job_id]))
    return Status(found[0]["status"]) if found else None


async def _size(request: Request) -> int:
    return len(await request.body())


def _many(kind: JobType, inputs: list[Any], options: Options) -> Statement[list[Dispatched]]:
    if kind.defaults.category is None:
        return dispatching.many(kind, _each(kind.written, inputs), options)
    # As they were sent: the model of a type may leave out the envelope that its rules ask for.
    ruled = _each(lambda value: kind.rule(value, options), inputs)
    return dispatching.many_ruled(kind, ruled, options)


def _each(check: Callable[[Any], T], inputs: list[Any]) -> list[T]:
    """Check inputs one by one; refuse all with the faults of the first that are bad."""
    checked: list[T] = []
    faults: list[Fault] = []
    bad = 0
    for place, value in enumerate(inputs):
        try:
            checked.append(check(value))
        except InvalidPayload as error:
            faults += faults_at(f"$.inputs[{place}]", error)
            bad += 1
            if bad == MOST_BAD_INPUTS:
                break
    if faults:
        raise invalid(faults)
    return checked
