"""Schedules: what runs again and again, for whoever looks after it."""

from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query

from forge.core.cron_words import in_words
from forge.core.run import rule_of
from forge.core.schedule_record import ScheduleRecord
from forge.core.shown import shown_schedule
from forge.http.access import Caller, Manager, Staff
from forge.http.described import problems
from forge.http.json_route import AdmitFirst
from forge.http.paging import read_cursor, write_cursor
from forge.http.problem import Problem
from forge.http.schedule_shapes import ScheduleDetail, ScheduleOut, SchedulePage
from forge.http.shapes import Name, RequestIn
from forge.store import audit, schedules
from forge.store.statement import Statement

Move = Callable[[UUID, int | None], Statement[ScheduleRecord | None]]
router = APIRouter(tags=["schedules"], route_class=AdmitFirst)
FORETOLD = 5


@router.get(
    "/_api/schedules",
    operation_id="list_schedules",
    response_model=SchedulePage,
    responses=problems("invalid"),
)
async def list_schedules(
    caller: Staff,
    type: Name | None = None,
    enabled: bool | None = None,
    cursor: Annotated[str | None, Query(description="The `next_cursor` of a page.")] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> SchedulePage:
    """List schedules, the newest first."""
    before = None if cursor is None else read_cursor(cursor)
    wanted = schedules.listed(type, enabled, caller.tenant_id, before, limit + 1)
    found = await caller.run(wanted)
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
    """Return a schedule as it stands now, with its next runs."""
    return await _detail(caller, await _find(caller, schedule_id))


@router.post(
    "/_api/schedules/{schedule_id}/enable",
    operation_id="enable_schedule",
    response_model=ScheduleDetail,
    responses=problems("not_found"),
)
async def enable_schedule(
    schedule_id: UUID, caller: Manager, body: RequestIn | None = None
) -> ScheduleDetail:
    """Let a schedule run: at the time it has, at once if that has passed."""
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
    """Let a schedule rest; a run that goes on is finished."""
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
    """Make a schedule due at once, out of turn; one that runs is run once more."""
    await _find(caller, schedule_id)
    moved = await _move(caller, schedule_id, schedules.run_now, "schedule_run_requested", body)
    if moved is None:
        raise Problem(
            "conflict", "the schedule is disabled, so that it cannot run; enable it first"
        )
    return await _detail(caller, moved)


async def _find(caller: Caller, schedule_id: UUID) -> ScheduleRecord:
    found = await caller.run(schedules.get(schedule_id, caller.tenant_id))
    return _there(schedule_id, found)


async def _set_enabled(
    caller: Caller, schedule_id: UUID, enabled: bool, body: RequestIn | None
) -> ScheduleDetail:
    """Move a schedule if it is not where it is wanted already, which nobody need read about."""
    known = await _find(caller, schedule_id)
    if known.enabled is enabled:
        return await _detail(caller, known)

    def move(id: UUID, tenant: int | None) -> Statement[ScheduleRecord | None]:
        return schedules.enable(id, enabled, tenant)

    event = "schedule_enabled" if enabled else "schedule_disabled"
    moved = await _move(caller, schedule_id, move, event, body)
    return await _detail(caller, _there(schedule_id, moved))


async def _move(
    caller: Caller, schedule_id: UUID, move: Move, event: str, body: RequestIn | None
) -> ScheduleRecord | None:
    """Move a schedule and write down who did, in one transaction; None where it did not move."""
    actor, reason = caller.identity.name, body.reason if body else None

    async def moving(ask: Any) -> ScheduleRecord | None:
        moved: ScheduleRecord | None = await ask(move(schedule_id, caller.tenant_id))
        if moved is not None:
            await ask(audit.add_of_schedule(event, actor, moved.tenant_id, moved.id, reason))
        return moved

    return await caller.app.schedules.carry_out(moving, None, caller.tenant_id)


async def _detail(caller: Caller, record: ScheduleRecord) -> ScheduleDetail:
    shown = _shown(caller, record)
    now = await caller.run(schedules.now())
    return ScheduleDetail(**shown, next_runs=_ruled(caller, record).next_runs(now, FORETOLD))


def _shown(caller: Caller, record: ScheduleRecord) -> dict[str, Any]:
    return asdict(shown_schedule(record)) | {"in_words": in_words(_ruled(caller, record).rule)}


def _ruled(caller: Caller, record: ScheduleRecord) -> ScheduleRecord:
    """Return a schedule with the rule of its type where it has none of its own."""
    definition = caller.app.schedule_definitions.get(record.type)
    rule = rule_of(record, None if definition is None else definition.rule)
    return replace(record, every=rule.every, cron=rule.cron, tz=rule.tz)


def _there(schedule_id: UUID, found: ScheduleRecord | None) -> ScheduleRecord:
    if found is None:
        raise Problem("not_found", f"there is no schedule {schedule_id}; list them to find it")
    return found
