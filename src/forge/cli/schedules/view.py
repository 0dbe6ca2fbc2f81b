"""A schedule as commands show it: state, rule in words, next runs, and whether a worker runs it."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from forge.core.errors import UnknownSchedule
from forge.core.schedules.record import ScheduleRecord
from forge.core.schedules.rule import in_words
from forge.core.sensitive.shown import shown_schedule
from forge.operations.findings.work import has_worker
from forge.store import schedules

if TYPE_CHECKING:
    from forge.app import Forge


@dataclass(frozen=True)
class ScheduleView:
    """A schedule, the database's time, and whether a live worker runs its type."""

    record: ScheduleRecord
    now: datetime
    has_worker: bool

    @property
    def state(self) -> str:
        if self.record.running_since is not None:
            return "running"
        if not self.record.enabled:
            return "disabled"
        return "waiting" if self.has_worker else "no worker"

    @property
    def words(self) -> str:
        return in_words(self.record.rule)

    @property
    def next_runs(self) -> list[datetime]:
        return self.record.next_runs(self.now)

    def as_json(self) -> dict[str, Any]:
        columns = {field.name: getattr(self.record, field.name) for field in fields(self.record)}
        return columns | {
            "when": self.words,
            "next_runs": [moment.isoformat() for moment in self.next_runs],
            "has_worker": self.has_worker,
        }


async def views(app: "Forge", records: Sequence[ScheduleRecord]) -> list[ScheduleView]:
    """Return views of these schedules."""
    database = await (await app.session()).database()
    now = await database.run(schedules.now())
    live = [worker for worker in await app.workers.list() if worker.is_alive]
    return [
        ScheduleView(
            shown_schedule(record), now, has_worker(record.type, record.worker_capability, live)
        )
        for record in records
    ]


async def find(app: "Forge", named: str, key: str, tenant: int | None) -> ScheduleRecord:
    """Find a schedule by its id, or by its type and key."""
    try:
        schedule_id = UUID(named)
    except ValueError:
        return await app.schedules.get(named, key, tenant_id=tenant)
    found = await (await (await app.session()).database()).run(schedules.get(schedule_id))
    if found is None:
        raise UnknownSchedule(
            f"schedule {schedule_id} not found",
            "`forge schedules list` shows all schedules",
        )
    return found
