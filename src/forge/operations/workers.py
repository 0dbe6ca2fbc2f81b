"""`app.workers`: list workers, and drain and resume them."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import fields
from uuid import UUID

from forge.core.errors import UnknownWorker
from forge.core.new_job import check_name, check_uuid
from forge.core.pause import LONGEST_REASON
from forge.core.worker_record import CurrentWork, WorkerRecord
from forge.definitions.catalog import RunStatement
from forge.jobs.session import Sessions
from forge.store import workers
from forge.store.statement import Row

# How much of what runs in each worker a list has, and a single worker.
SHOWN_IN_LIST = 10
SHOWN_ALONE = 200

Records = list[WorkerRecord]
_COLUMNS = {field.name for field in fields(WorkerRecord)} - {"is_alive", "current"}


class Workers:
    """The workers of an app's database."""

    def __init__(self, sessions: Sessions, run: RunStatement | None = None) -> None:
        self._sessions = sessions
        self._run = run or sessions.run

    def running(self, run: RunStatement) -> "Workers":
        """Return the same verbs with `run` for statements, such as a tenant-bound connection."""
        return Workers(self._sessions, run)

    async def list(self) -> Records:
        """Return the workers that are alive or were recently, oldest first."""
        return await self._read(None, SHOWN_IN_LIST)

    async def get(self, worker_id: UUID | str) -> WorkerRecord:
        """Return a worker, with what it runs."""
        known_id = check_uuid(worker_id, "worker_id")
        found = await self._read(known_id, SHOWN_ALONE)
        if not found:
            raise UnknownWorker(f"there is no worker {known_id}", "`forge workers` lists them")
        return found[0]

    async def drain(
        self, worker_id: UUID | str, *, reason: str | None = None, actor: str | None = None
    ) -> WorkerRecord:
        """Have a worker claim nothing more until it is resumed or stops; what runs goes on."""
        await self._set([check_uuid(worker_id, "worker_id")], True, actor, reason)
        return await self.get(worker_id)

    async def drain_all(
        self, *, reason: str | None = None, actor: str | None = None
    ) -> Sequence[UUID]:
        """Drain every worker that runs now; return the ids of those that were not drained."""
        return await self._set(None, True, actor, reason)

    async def resume(
        self, worker_id: UUID | str, *, reason: str | None = None, actor: str | None = None
    ) -> WorkerRecord:
        """Have a drained worker claim again."""
        await self._set([check_uuid(worker_id, "worker_id")], False, actor, reason)
        return await self.get(worker_id)

    async def resume_all(
        self, *, reason: str | None = None, actor: str | None = None
    ) -> Sequence[UUID]:
        """Resume every drained worker; return their ids."""
        return await self._set(None, False, actor, reason)

    async def _set(
        self,
        worker_ids: Sequence[UUID] | None,
        is_drained: bool,
        actor: str | None,
        reason: str | None,
    ) -> Sequence[UUID]:
        if reason is not None:
            check_name(reason, what="reason", longest=LONGEST_REASON)
        return await self._run(workers.set_drained(worker_ids, is_drained, actor, reason))

    async def _read(self, worker_id: UUID | None, shown: int) -> Records:
        rows = await self._run(workers.listed(worker_id))
        current: dict[UUID, list[CurrentWork]] = defaultdict(list)
        for row in await self._run(workers.current_work([row["id"] for row in rows], shown)):
            held = dict(row)
            current[held.pop("worker_id")].append(CurrentWork(**held))
        dead_after = self._sessions.config.worker.dead_after.total_seconds()
        return [_record(row, dead_after, current[row["id"]]) for row in rows]


def _record(row: Row, dead_after: float, current: Sequence[CurrentWork]) -> WorkerRecord:
    values = {name: row[name] for name in _COLUMNS}
    return WorkerRecord(**values, is_alive=row["silent_for"] < dead_after, current=current)
