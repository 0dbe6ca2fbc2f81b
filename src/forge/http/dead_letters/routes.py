"""Dead letters: list, group, reprocess one or many, discard."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Response

from forge.core.dead_letter import CAUSES, Activity, DeadLetter, DeadLetterGroup, LetterStatus
from forge.core.errors import InvalidPayload
from forge.core.payload_rules import Category
from forge.core.retry import ErrorClass
from forge.core.sensitive.redact import redact_key
from forge.core.sensitive.shown import shown_letter
from forge.dead_letters import DeadLetters
from forge.dead_letters.review import MAX_STEPS
from forge.dead_letters.shown import shown_groups, shown_letters
from forge.http.auth.access import Caller, Manager
from forge.http.dead_letters.shapes import (
    BulkDiscardIn,
    BulkIn,
    BulkOut,
    CausesIn,
    DeadLetterDetail,
    DeadLetterGroupOut,
    DeadLetterGroups,
    DeadLetterItem,
    DeadLetterPage,
    DiscardIn,
    DiscardOut,
    RecentSteps,
    ReprocessIn,
    ReprocessOut,
    StatisticsOut,
)
from forge.http.fields import Name, NumberCursor, RowNumber, TenantId
from forge.http.middleware.json_route import AdmitFirst
from forge.http.off_loop import THREAD_THRESHOLD, off_loop
from forge.http.problems.problem import faults_at, invalid, problems

router = APIRouter(tags=["admin"], route_class=AdmitFirst)
DlqId = Annotated[RowNumber, Path()]


@router.get(
    "/api/jobs/admin/dlq/",
    operation_id="admin_list_dead_letters",
    response_model=DeadLetterPage,
    responses=problems("invalid"),
)
async def list_dead_letters(
    caller: Manager,
    status: LetterStatus | None = None,
    category: Category | None = None,
    job_type: Name | None = None,
    error_class: ErrorClass | None = None,
    fingerprint: Annotated[Name | None, Query(description="Only this group.")] = None,
    tenant_id: TenantId | None = None,
    cursor: Annotated[NumberCursor | None, Query()] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> DeadLetterPage:
    """List dead letters without payloads, newest first."""
    page = await _letters(caller).list(
        status=status,
        category=category,
        job_type=job_type,
        error_class=error_class,
        fingerprint=fingerprint,
        tenant_id=caller.tenant_for(tenant_id),
        before=None if cursor is None else int(cursor),
        limit=limit,
    )
    shown = await shown_letters(caller.app.catalog, page.items, caller.run)
    return DeadLetterPage(
        dlq_items=[DeadLetterItem.model_validate(letter) for letter in shown],
        total_count=page.total_count,
        next_cursor=None if page.next_cursor is None else str(page.next_cursor),
    )


@router.get(
    "/api/jobs/admin/dlq/statistics/",
    operation_id="admin_dead_letter_statistics",
    response_model=StatisticsOut,
)
async def dead_letter_statistics(caller: Manager) -> StatisticsOut:
    """Count dead letters by status, category, type and error class."""
    shown = asdict(await _letters(caller).statistics(tenant_id=caller.tenant_id))
    return StatisticsOut(total_count=shown.pop("total"), **shown)


@router.get(
    "/api/jobs/admin/dlq/groups/",
    operation_id="admin_group_dead_letters",
    response_model=DeadLetterGroups,
    responses=problems("invalid"),
)
async def group_dead_letters(
    caller: Manager,
    status: LetterStatus = "pending_review",
    category: Category | None = None,
    job_type: Name | None = None,
    error_class: ErrorClass | None = None,
    fingerprint: Annotated[Name | None, Query(description="Only this group.")] = None,
    tenant_id: TenantId | None = None,
    step: Annotated[
        str | None,
        Query(
            pattern=r"^[0-9]+(m|h|d)$",
            description="Count the dead letters of each step of the latest period in `recent`.",
            examples=["1h"],
        ),
    ] = None,
    steps: Annotated[int, Query(ge=1, le=MAX_STEPS)] = 24,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> DeadLetterGroups:
    """Group dead letters by cause, most frequent first."""
    letters = _letters(caller)
    tenant = caller.tenant_for(tenant_id)
    found = await letters.groups(
        status=status,
        category=category,
        job_type=job_type,
        error_class=error_class,
        fingerprint=fingerprint,
        tenant_id=tenant,
        limit=limit,
    )
    groups = await _groups(caller, found)
    if step is None:
        return DeadLetterGroups(groups=groups)
    causes = [group.fingerprint for group in found]
    activity = await letters.activity(
        causes, status=status, step=step, steps=steps, tenant_id=tenant
    )
    return _with_recent(groups, activity)


@router.post(
    "/api/jobs/admin/dlq/reprocess/",
    status_code=202,
    operation_id="admin_reprocess_many",
    response_model=BulkOut,
    responses={200: {"model": BulkOut, "description": "After a dry run: nothing was changed."}},
)
async def reprocess_many(caller: Manager, body: BulkIn, response: Response) -> BulkOut:
    """Reprocess all matching dead letters in a worker, rate-limited, after a few canaries."""
    return await _request(caller, body, response, "forge.reprocess")


@router.post(
    "/api/jobs/admin/dlq/discard/",
    status_code=202,
    operation_id="admin_discard_many",
    response_model=BulkOut,
    responses={200: {"model": BulkOut, "description": "After a dry run: nothing was changed."}},
)
async def discard_many(caller: Manager, body: BulkDiscardIn, response: Response) -> BulkOut:
    """Discard all matching dead letters in a worker."""
    return await _request(caller, body, response, "forge.discard")


@router.get(
    "/api/jobs/admin/dlq/{dlq_id}/",
    operation_id="admin_get_dead_letter",
    response_model=DeadLetterDetail,
    responses=problems("not_found"),
)
async def get_dead_letter(dlq_id: DlqId, caller: Manager) -> DeadLetterDetail:
    """Return a dead letter with its payload and every attempt."""
    letter = await _letters(caller).get(dlq_id, tenant_id=caller.tenant_id)
    allowed = await caller.app.catalog.sensitive_allowed(letter.job_type)
    # The size is unknown, and this is one letter at a time: always use the thread.
    return await off_loop(THREAD_THRESHOLD, _detail, letter, allowed)


@router.post(
    "/api/jobs/admin/dlq/{dlq_id}/reprocess/",
    operation_id="admin_reprocess_dead_letter",
    response_model=ReprocessOut,
    responses=problems("not_found", "unknown_job_type", "conflict"),
)
async def reprocess_dead_letter(
    dlq_id: DlqId, caller: Manager, body: ReprocessIn | None = None
) -> ReprocessOut:
    """Dispatch a new job from a dead letter, optionally with an edited payload."""
    body = body or ReprocessIn()
    letters = _letters(caller)
    wanted = body.model_dump(exclude={"dry_run"})
    try:
        if body.dry_run:
            await letters.check_reprocess(dlq_id, **wanted, tenant_id=caller.tenant_id)
            return _planned(dlq_id)
        made = await letters.reprocess(
            dlq_id, **wanted, actor=caller.identity.name, tenant_id=caller.tenant_id
        )
    except InvalidPayload as error:
        edited = "$.payload" if body.patch is None else "$.patch"
        raise invalid(faults_at(edited, error)) from None
    made = made._replace(new_idempotency_key=redact_key(made.new_idempotency_key))
    return ReprocessOut(message="DLQ item reprocessed successfully", **made._asdict())


@router.post(
    "/api/jobs/admin/dlq/{dlq_id}/discard/",
    operation_id="admin_discard_dead_letter",
    response_model=DiscardOut,
    responses=problems("not_found", "conflict"),
)
async def discard_dead_letter(dlq_id: DlqId, caller: Manager, body: DiscardIn) -> DiscardOut:
    """Close the review of a dead letter without reprocessing it."""
    await _letters(caller).discard(
        dlq_id, notes=body.notes, actor=caller.identity.name, tenant_id=caller.tenant_id
    )
    return DiscardOut(message="DLQ item discarded", dlq_id=dlq_id)


async def _request(
    caller: Caller,
    body: CausesIn,
    response: Response,
    job_type: Literal["forge.reprocess", "forge.discard"],
) -> BulkOut:
    """Plan the review of many, and ask a worker for it unless it is a dry run."""
    options = body.model_dump(exclude={"dry_run", "all"})
    options["tenant_id"] = caller.tenant_for(body.tenant_id)
    letters = _letters(caller)
    causes: Any = {name: options[name] for name in CAUSES}
    plan = await letters.plan(**causes)
    job_id = None
    if body.dry_run:
        response.status_code = 200
    else:
        review = letters.discard_many if job_type == "forge.discard" else letters.reprocess_many
        job_id = (await review(**options, actor=caller.identity.name)).id
    return BulkOut(
        job_id=job_id,
        job_type=job_type,
        dry_run=body.dry_run,
        letters=plan.letters,
        groups=await _groups(caller, plan.groups),
    )


def _planned(dlq_id: int) -> ReprocessOut:
    return ReprocessOut(
        message="DLQ item would be reprocessed",
        dlq_id=dlq_id,
        new_job_id=None,
        new_idempotency_key=None,
    )


def _with_recent(groups: list[DeadLetterGroupOut], activity: Activity | None) -> DeadLetterGroups:
    if activity is None:
        return DeadLetterGroups(groups=groups)
    return DeadLetterGroups(
        groups=[
            group.model_copy(update={"recent": activity.counts[group.fingerprint]})
            for group in groups
        ],
        recent_steps=RecentSteps(
            began=activity.began, step=activity.step, highest=activity.highest
        ),
    )


def _detail(letter: DeadLetter, allowed: Sequence[str]) -> DeadLetterDetail:
    return DeadLetterDetail.model_validate(shown_letter(letter, allowed))


def _letters(caller: Caller) -> DeadLetters:
    """Return the dead letters of the caller's tenant."""
    return caller.app.dead_letters.running(caller.run)


async def _groups(caller: Caller, found: Sequence[DeadLetterGroup]) -> list[DeadLetterGroupOut]:
    shown = await shown_groups(caller.app.catalog, found, caller.run)
    return [DeadLetterGroupOut.model_validate(group) for group in shown]
