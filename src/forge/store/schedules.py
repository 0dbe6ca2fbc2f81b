"""Statements on forge_schedules, one function each."""

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from forge.core.schedules.record import ScheduleRecord
from forge.core.schedules.rule import Missed, Rule
from forge.core.schedules.run import Conclusion, Run, make_run
from forge.store.jobs import Lane, LaneCursor
from forge.store.statement import Row, Rows, Statement, columns, ids, load, only, rows

# How many recent runs a row keeps.
MAX_RECENT_RUNS = 20


class ScheduleValues(NamedTuple):
    """A schedule to create or update, in the order of schedules/ensure's parameters."""

    id: UUID
    type: str
    key: str
    tenant_id: int | None
    payload: str
    next_run_at: datetime | None
    tick_at: datetime | None
    every: timedelta | None
    cron: str | None
    tz: str
    missed: Missed
    jitter: timedelta | None
    priority: int
    worker_capability: str | None
    timeout: timedelta | None
    enables: bool
    given: list[str]


class FailingSchedules(NamedTuple):
    """How many schedules failed in their last runs, and those that failed most often."""

    schedules: int
    named: list[dict[str, Any]]


class EditedValues(NamedTuple):
    """What an edit writes, in the order of schedules/edit's parameters."""

    # JSON; None leaves it as it is.
    payload: str | None
    next_run_at: datetime | None
    tick_at: datetime | None
    every: timedelta | None
    cron: str | None
    tz: str
    missed: Missed
    jitter: timedelta | None
    priority: int
    worker_capability: str | None
    timeout: timedelta | None
    edited: list[str]


class RunUpdate(NamedTuple):
    """The heartbeat of a run, and its checkpoint for the next run."""

    id: UUID
    lease: int
    checkpoint: str | None


def ensure(values: ScheduleValues) -> Statement[ScheduleRecord]:
    return Statement(load("schedules/ensure"), tuple(values), _record)


def edit(
    schedule_id: UUID, tenant: int | None, values: EditedValues
) -> Statement[ScheduleRecord | None]:
    return Statement(load("schedules/edit"), (schedule_id, tenant, *values), _record_or_none)


def find(type: str, key: str, tenant: int | None) -> Statement[UUID | None]:
    return Statement(
        load("schedules/find"), (type, key, tenant), lambda found: found[0]["id"] if found else None
    )


def now() -> Statement[datetime]:
    return Statement(load("schedules/now"), (), lambda found: found[0]["now"])


def enable(
    schedule_id: UUID, enabled: bool, tenant: int | None = None
) -> Statement[ScheduleRecord | None]:
    return Statement(load("schedules/enable"), (schedule_id, enabled, tenant), _record_or_none)


def run_now(schedule_id: UUID, tenant: int | None = None) -> Statement[ScheduleRecord | None]:
    return Statement(load("schedules/run_now"), (schedule_id, tenant), _record_or_none)


def lock(schedule_id: UUID) -> Statement[list[UUID]]:
    return Statement(load("schedules/lock"), (schedule_id,), ids)


def has_any(query: str, args: Sequence[Any]) -> Statement[bool]:
    """Check whether the caller's query returns a row other than a single false, as of EXISTS."""
    text = load("schedules/first_of").replace(":query", query.strip().rstrip(";"))
    return Statement(text, tuple(args), _is_any)


def get(schedule_id: UUID, tenant: int | None = None) -> Statement[ScheduleRecord | None]:
    return Statement(load("schedules/get"), ([schedule_id], tenant), _record_or_none)


def listed(
    type: str | None,
    key: str | None,
    enabled: bool | None,
    tenant: int | None,
    before: UUID | None,
    limit: int,
) -> Statement[list[ScheduleRecord]]:
    args = (type, key, enabled, tenant, before, limit)
    return Statement(load("schedules/list"), args, _records)


def types(limit: int) -> Statement[Rows]:
    """Count the enabled schedules by type, up to a limit per lane."""
    return Statement(load("schedules/types"), (limit,), rows)


def failing(runs: int, limit: int, named: int = 0) -> Statement[FailingSchedules]:
    """Count schedules that failed in their last runs, up to a limit, and name some."""
    return Statement(load("schedules/count_failing"), (runs, limit, named), _failing)


def survey() -> Statement[list[Lane]]:
    return Statement(load("schedules/survey"), (), lambda found: [Lane(**row) for row in found])


def claim(
    cursors: Sequence[LaneCursor],
    limit: int,
    *,
    worker: UUID,
    incarnation: UUID,
    rules: Mapping[str, Rule],
    lanes: Sequence[Lane],
) -> Statement[list[Run]]:
    """Claim due schedules of types that are not paused.

    `rules` has the rules of types, for rows without their own, `lanes` describes the lanes.
    """
    keys, ats, after = ([cursor[part] for cursor in cursors] for part in range(3))
    types = [lane.job_type for lane in lanes]
    args = (keys, ats, after, limit, worker, incarnation, types)
    return Statement(load("schedules/claim"), args, _runs(rules))


def conclude(conclusions: Sequence[Conclusion]) -> Statement[list[UUID]]:
    args = (*columns(conclusions), MAX_RECENT_RUNS, True)
    return Statement(load("schedules/conclude"), args, ids)


def standing(conclusions: Sequence[Conclusion]) -> Statement[list[UUID]]:
    runs = [(done.id, done.lease, done.outcome) for done in conclusions]
    return Statement(load("schedules/standing"), columns(runs), ids)


def note(updates: Sequence[RunUpdate]) -> Statement[list[UUID]]:
    return Statement(load("schedules/note"), (*columns(updates), True), ids)


def release(held: Sequence[tuple[UUID, int]]) -> Statement[list[UUID]]:
    return Statement(load("schedules/release"), columns(held), ids)


def reconcile(worker: UUID, incarnation: UUID, held: Sequence[tuple[UUID, int]]) -> Statement[Rows]:
    args = (worker, incarnation, [id for id, _ in held], [lease for _, lease in held])
    return Statement(load("schedules/reconcile"), args, rows)


def rescue(
    owners: Sequence[UUID] | None, *, dead_after: float, stale_after: float, limit: int
) -> Statement[Rows]:
    args = (owners, dead_after, stale_after, limit, MAX_RECENT_RUNS)
    return Statement(load("schedules/rescue"), args, rows)


def _runs(rules: Mapping[str, Rule]) -> Callable[[Rows], list[Run]]:
    def read(found: Rows) -> list[Run]:
        return [_run(row, rules) for row in found]

    return read


def _run(row: Row, rules: Mapping[str, Rule]) -> Run:
    record = ScheduleRecord.from_row(row)
    return make_run(record, row["payload"], row["checkpoint"], rules.get(record.type))


def _record(found: Rows) -> ScheduleRecord:
    return ScheduleRecord.from_row(found[0])


def _record_or_none(found: Rows) -> ScheduleRecord | None:
    return ScheduleRecord.from_row(found[0]) if found else None


def _records(found: Rows) -> list[ScheduleRecord]:
    return [ScheduleRecord.from_row(row) for row in found]


def _is_any(found: Rows) -> bool:
    return bool(found) and list(dict(found[0]).values()) != [False]


def _failing(found: Rows) -> FailingSchedules:
    row = only(found)
    named = row["named"]
    # Some drivers return jsonb as text, others decode it.
    return FailingSchedules(row["count"], json.loads(named) if isinstance(named, str) else named)
