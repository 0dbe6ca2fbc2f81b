"""Schedules: list, show, edit, preview, enable, disable, run now."""

from dataclasses import asdict, replace
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query

from forge.core.errors import InvalidPayload
from forge.core.schedules.edit import MAX_PREVIEWED
from forge.core.schedules.record import ScheduleRecord
from forge.core.schedules.rule import in_words
from forge.core.schedules.run import rule_of
from forge.core.sensitive.shown import shown_schedule
from forge.definitions.catalog import RunStatement
from forge.http.auth.access import Caller, Manager, Staff
from forge.http.fields import Key, Name, TenantId
from forge.http.jobs.paging import read_cursor, write_cursor
from forge.http.jobs.shapes import RequestIn
from forge.http.middleware.json_route import AdmitFirst
from forge.http.problems.problem import Problem, faults_at, invalid, problems
from forge.http.schedules.shapes import (
    ScheduleChangesIn,
    ScheduleDetail,
    ScheduleEditIn,
    ScheduleOut,
    SchedulePage,
    SchedulePreviewOut,
)
from forge.schedules.edit import EditRequest
from forge.store import audit, schedules
from forge.store.statement import Statement

Move = Statement[ScheduleRecord | None]
router = APIRouter(tags=["schedules"], route_class=AdmitFirst)
# Future runs that a schedule's detail shows.
NEXT_RUNS = 5


@router.get(
    "/_api/schedules",
    operation_id="list_schedules",
    response_model=SchedulePage,
    responses=problems("invalid"),
)
async def list_schedules(
    caller: Staff,
    type: Name | None = None,
    key: Annotated[Key | None, Query(description="Empty for schedules without a key.")] = None,
    enabled: bool | None = None,
    tenant_id: TenantId | None = None,
    cursor: Annotated[str | None, Query(description="The `next_cursor` of a page.")] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> SchedulePage:
    """List schedules, newest first."""
    before = None if cursor is None else read_cursor(cursor)
    tenant = caller.tenant_for(tenant_id)
    found = await caller.run(schedules.listed(type, key, enabled, tenant, before, limit + 1))
    page = found[:limit]
    return SchedulePage(
        items=[ScheduleOut(**_shown(caller, record)) for record in page],
        next_cursor=write_cursor(page[-1].id) if len(found) > limit else None,
    )


@router.get(
    "/_api/schedules/{schedule_id}",
    operation_id="get_schedule",
    response_model=ScheduleDetail,
    responses=problems("not_found"),
)
async def get_schedule(schedule_id: UUID, caller: Staff) -> ScheduleDetail:
    """Return a schedule with its next runs."""
    return await _detail(caller, await _find(caller, schedule_id))


@router.patch(
    "/_api/schedules/{schedule_id}",
    operation_id="edit_schedule",
    response_model=ScheduleDetail,
    responses=problems("not_found", "invalid"),
)
async def edit_schedule(schedule_id: UUID, caller: Manager, body: ScheduleEditIn) -> ScheduleDetail:
    """Change the rule, the payload or other fields of a schedule.

    A changed rule plans the next run again. A run in progress finishes by the old one.
    """
    asked = _edit(caller, schedule_id, body)._replace(
        reason=body.reason, actor=caller.identity.name
    )
    verbs = caller.app.schedules
    try:
        edited = await verbs.carry_out(
            lambda run: verbs.editor.edit(run, asked), None, caller.tenant_id
        )
    except InvalidPayload as error:
        raise invalid(faults_at(_payload_path(body), error)) from None
    return await _detail(caller, edited)


@router.post(
    "/_api/schedules/{schedule_id}/preview",
    operation_id="preview_schedule",
    response_model=SchedulePreviewOut,
    responses=problems("not_found", "invalid"),
)
async def preview_schedule(
    schedule_id: UUID,
    caller: Staff,
    body: ScheduleChangesIn | None = None,
    count: Annotated[int, Query(ge=1, le=MAX_PREVIEWED)] = NEXT_RUNS,
) -> Any:
    """Check an edit without making it, and return when the schedule would run after it."""
    wanted = body or ScheduleChangesIn()
    asked = _edit(caller, schedule_id, wanted)
    try:
        preview = await caller.app.schedules.editor.preview(caller.run, asked, count)
    except InvalidPayload as error:
        raise invalid(faults_at(_payload_path(wanted), error)) from None
    return asdict(preview)


@router.post(
    "/_api/schedules/{schedule_id}/enable",
    operation_id="enable_schedule",
    response_model=ScheduleDetail,
    responses=problems("not_found"),
)
async def enable_schedule(
    schedule_id: UUID, caller: Manager, body: RequestIn | None = None
) -> ScheduleDetail:
    """Enable a schedule: it runs at its next time, or at once if that has passed."""
    return await _set_enabled(caller, schedule_id, True, body)


@router.post(
    "/_api/schedules/{schedule_id}/disable",
    operation_id="disable_schedule",
    response_model=ScheduleDetail,
    responses=problems("not_found"),
)
async def disable_schedule(
    schedule_id: UUID, caller: Manager, body: RequestIn | None = None
) -> ScheduleDetail:
    """Disable a schedule; a run in progress finishes."""
    return await _set_enabled(caller, schedule_id, False, body)


@router.post(
    "/_api/schedules/{schedule_id}/run",
    status_code=202,
    operation_id="run_schedule",
    response_model=ScheduleDetail,
    responses=problems("not_found", "conflict"),
)
async def run_schedule(
    schedule_id: UUID, caller: Manager, body: RequestIn | None = None
) -> ScheduleDetail:
    """Make a schedule due now; if it is running, it runs once more."""
    await _find(caller, schedule_id)
    move = schedules.run_now(schedule_id, caller.tenant_id)
    moved = await caller.app.schedules.carry_out(
        lambda run: _moved(caller, run, move, "schedule_run_requested", body),
        None,
        caller.tenant_id,
    )
    if moved is None:
        raise Problem("conflict", "the schedule is disabled; enable it first")
    return await _detail(caller, moved)


def _edit(caller: Caller, schedule_id: UUID, body: ScheduleChangesIn) -> EditRequest:
    return EditRequest(schedule_id, body.changes, body.reset, tenant_id=caller.tenant_id)


def _payload_path(body: ScheduleChangesIn) -> str:
    return "$.patch" if "patch" in body.model_fields_set else "$.payload"


async def _find(caller: Caller, schedule_id: UUID) -> ScheduleRecord:
    found = await caller.run(schedules.get(schedule_id, caller.tenant_id))
    return _found(schedule_id, found)


async def _set_enabled(
    caller: Caller, schedule_id: UUID, enabled: bool, body: RequestIn | None
) -> ScheduleDetail:
    """Enable or disable a schedule, unless it already is in that state."""
    known = await _find(caller, schedule_id)
    if known.enabled is enabled:
        return await _detail(caller, known)
    event = "schedule_enabled" if enabled else "schedule_disabled"

    async def change(run: RunStatement) -> ScheduleRecord | None:
        # Another request may have been quicker, with an audit event of its own.
        await run(schedules.lock(schedule_id))
        current = await run(schedules.get(schedule_id, caller.tenant_id))
        if current is None or current.enabled is enabled:
            return current
        move = schedules.enable(schedule_id, enabled, caller.tenant_id)
        return await _moved(caller, run, move, event, body)

    changed = await caller.app.schedules.carry_out(change, None, caller.tenant_id)
    return await _detail(caller, _found(schedule_id, changed))


async def _moved(
    caller: Caller, run: RunStatement, move: Move, event: str, body: RequestIn | None
) -> ScheduleRecord | None:
    """Change a schedule and write an audit event; None if unchanged."""
    moved = await run(move)
    if moved is not None:
        actor, reason = caller.identity.name, body.reason if body else None
        await run(audit.add_of_schedule(event, actor, moved.tenant_id, moved.id, reason))
    return moved


async def _detail(caller: Caller, record: ScheduleRecord) -> ScheduleDetail:
    shown = _shown(caller, record)
    now = await caller.run(schedules.now())
    return ScheduleDetail(**shown, next_runs=_with_rule(caller, record).next_runs(now, NEXT_RUNS))


def _shown(caller: Caller, record: ScheduleRecord) -> dict[str, Any]:
    return asdict(shown_schedule(record)) | {"in_words": in_words(_with_rule(caller, record).rule)}


def _with_rule(caller: Caller, record: ScheduleRecord) -> ScheduleRecord:
    """Return a schedule with the rule of its type if it has none of its own."""
    definition = caller.app.schedule_definitions.get(record.type)
    rule = rule_of(record, None if definition is None else definition.rule)
    return replace(record, every=rule.every, cron=rule.cron, tz=rule.tz)


def _found(schedule_id: UUID, found: ScheduleRecord | None) -> ScheduleRecord:
    if found is None:
        raise Problem("not_found", f"schedule {schedule_id} not found")
    return found
