"""What is asked of forge_schedules: one function per statement."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from forge.core.run import Conclusion, Run, make_run
from forge.core.schedule import Missed, Rule
from forge.core.schedule_record import ScheduleRecord
from forge.store.jobs import Lane, Place
from forge.store.statement import Row, Rows, Statement, columns, ids, load, rows

# How many runs a row remembers.
REMEMBERED = 20


class Wanted(NamedTuple):
    """A schedule as somebody wants it, in the order of schedules/ensure's parameters."""

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


class Sign(NamedTuple):
    """A sign of life of a run, and what it wants the next one to find."""

    id: UUID
    lease: int
    checkpoint: str | None


def ensure(wanted: Wanted) -> Statement[ScheduleRecord]:
    return Statement(load("schedules/ensure"), tuple(wanted), _record)


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
    """Ask whether the caller's query returns a row; a lone false, as of EXISTS, counts as none."""
    text = load("schedules/first_of").replace(":query", query.strip().rstrip(";"))
    return Statement(text, tuple(args), _is_any)


def get(schedule_id: UUID, tenant: int | None = None) -> Statement[ScheduleRecord | None]:
    return Statement(load("schedules/get"), ([schedule_id], tenant), _record_or_none)


def listed(
    type: str | None,
    enabled: bool | None,
    tenant: int | None,
    before: UUID | None,
    limit: int,
) -> Statement[list[ScheduleRecord]]:
    args = (type, enabled, tenant, before, limit)
    return Statement(load("schedules/list"), args, _records)


def types() -> Statement[Rows]:
    return Statement(load("schedules/types"), (), rows)


def survey() -> Statement[list[Lane]]:
    return Statement(load("schedules/survey"), (), lambda found: [Lane(**row) for row in found])


def claim(
    places: Sequence[Place],
    limit: int,
    *,
    worker: UUID,
    incarnation: UUID,
    rules: Mapping[str, Rule],
) -> Statement[list[Run]]:
    """Claim what is due; `rules` are those of the types, for rows without one of their own."""
    lanes, ats, after = ([place[part] for place in places] for part in range(3))
    args = (lanes, ats, after, limit, worker, incarnation)
    return Statement(load("schedules/claim"), args, _runs(rules))


def conclude(conclusions: Sequence[Conclusion]) -> Statement[list[UUID]]:
    args = (*columns(conclusions), REMEMBERED, True)
    return Statement(load("schedules/conclude"), args, ids)


def standing(conclusions: Sequence[Conclusion]) -> Statement[list[UUID]]:
    runs = [(done.id, done.lease, done.outcome) for done in conclusions]
    return Statement(load("schedules/standing"), columns(runs), ids)


def note(signs: Sequence[Sign]) -> Statement[list[UUID]]:
    return Statement(load("schedules/note"), (*columns(signs), True), ids)


def release(held: Sequence[tuple[UUID, int]]) -> Statement[list[UUID]]:
    return Statement(load("schedules/release"), columns(held), ids)


def reconcile(worker: UUID, incarnation: UUID, held: Sequence[tuple[UUID, int]]) -> Statement[Rows]:
    args = (worker, incarnation, [id for id, _ in held], [lease for _, lease in held])
    return Statement(load("schedules/reconcile"), args, rows)


def rescue(
    owners: Sequence[UUID] | None, *, dead_after: float, stale_after: float, limit: int
) -> Statement[Rows]:
    args = (owners, dead_after, stale_after, limit, REMEMBERED)
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
