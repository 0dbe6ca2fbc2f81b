"""Checks that workers consume jobs, with a canary job for each worker group."""

import asyncio
from time import monotonic
from typing import TYPE_CHECKING, Literal
from uuid import UUID

from pydantic import BaseModel, Field

from forge.builtin_jobs.definitions import canary_for
from forge.core.errors import DatabaseUnavailable, ForgeError, JobFailed, ResultTimeout, UnknownJob
from forge.core.workers.lanes import worker_group_name
from forge.store import jobs, migrate
from forge.store.connection.read_only import require_writable
from forge.store.queue_statistics import WorkerGroup, worker_groups
from forge.telemetry.metrics.instruments import Labels
from forge.telemetry.metrics.registries import ApiMetrics

if TYPE_CHECKING:
    from forge.app import Forge

# Seconds that a canary may take, that a result is reused, and between two background checks.
CANARY_TIMEOUT = 3.0
REUSE_FOR = 10.0
BACKGROUND_INTERVAL = 30.0
# Seconds that the database may take to respond.
DATABASE_TIMEOUT = 2.0


class CrewOut(BaseModel):
    """Workers with the same capabilities and queues, and whether they consume jobs."""

    crew: str = Field(
        description="Capabilities, or `any`; after an @ the queues, unless it serves all."
    )
    workers: int
    state: Literal["consumes", "busy", "silent"] = Field(
        description="`busy`: all slots are in use, so the canary waits."
    )
    latency_seconds: float | None = Field(description="Duration of its last canary.")


class Canaries:
    """Dispatches canaries, one at a time per worker group, and records their results."""

    def __init__(self, app: "Forge", metrics: ApiMetrics) -> None:
        self._app = app
        self._crews: dict[str, _GroupState] = {}
        self._reports: list[CrewOut] = []
        self._checked_at = float("-inf")
        self._checking = asyncio.Lock()
        self._round: asyncio.Task[object] | None = None
        metrics.canary_age.read = self._ages
        metrics.canary_latency.read = self._latencies

    async def check(self) -> list[CrewOut]:
        """Check each worker group; a recent result is reused."""
        async with self._checking:
            if monotonic() - self._checked_at > REUSE_FOR:
                dead_after = self._app.config.worker.dead_after.total_seconds()
                database = await (await self._app.session()).database()
                crews = await database.run(worker_groups(dead_after))
                names = {worker_group_name(crew.capabilities, crew.queues): crew for crew in crews}
                self._crews = {name: self._crews.get(name) or _GroupState() for name in names}
                self._reports = await asyncio.gather(*map(self._try, names, names.values()))
                self._checked_at = monotonic()
            return self._reports

    async def check_in_background(self) -> None:
        """Start a background check if the last one is old."""
        is_running = self._round is not None and not self._round.done()
        if not is_running and monotonic() - self._checked_at > BACKGROUND_INTERVAL:
            if self._round is None:
                (await self._app.session()).on_close(self._stop)
            self._round = asyncio.create_task(self._check_quietly())

    async def _check_quietly(self) -> None:
        try:
            await self.check()
        except ForgeError:
            return  # the metric of the canary's age shows the failure

    async def _stop(self) -> None:
        if self._round is not None:
            self._round.cancel()

    async def _try(self, name: str, crew: WorkerGroup) -> CrewOut:
        seen = self._crews[name]
        if seen.waiting is None:
            handle = await self._app.dispatch(canary_for(name), {"previous": seen.over})
            seen.waiting = handle.id
        try:
            await self._app.handle(seen.waiting).result(CANARY_TIMEOUT)
            took, ago = await self._times(seen.waiting)
            seen.consumed(took, ago)
        except ResultTimeout:
            # Waiting survives a lost database: check it before blaming the workers.
            await require_database(self._app)
            # Keep the pending canary for the next check, so that canaries do not pile up.
            state: Literal["busy", "silent"] = "busy" if crew.running >= crew.slots else "silent"
            return CrewOut(crew=name, workers=crew.workers, state=state, latency_seconds=None)
        except (UnknownJob, JobFailed):
            seen.over, seen.waiting = [], None  # the canary was deleted or cancelled
            return CrewOut(crew=name, workers=crew.workers, state="silent", latency_seconds=None)
        if ago > CANARY_TIMEOUT:  # a canary of an earlier check: try a new one
            return await self._try(name, crew)
        return CrewOut(crew=name, workers=crew.workers, state="consumes", latency_seconds=took)

    async def _times(self, canary: UUID) -> tuple[float, float]:
        """Return how long a canary took, and how long ago it ended."""
        database = await (await self._app.session()).database()
        found = await database.run(jobs.canary_times(canary))
        if not found:
            raise UnknownJob.of(canary)
        return found[0]["took"], found[0]["ago"]

    def _ages(self) -> dict[Labels, float]:
        now = monotonic()
        return {(name,): now - seen.alive_at for name, seen in self._crews.items()}

    def _latencies(self) -> dict[Labels, float]:
        found = {(name,): seen.latency for name, seen in self._crews.items()}
        return {labels: latency for labels, latency in found.items() if latency is not None}


async def require_database(app: "Forge") -> None:
    """Raise unless the database responds, accepts writes and has the current tables."""
    try:
        async with asyncio.timeout(DATABASE_TIMEOUT):
            database = await (await app.session()).database()
            await database.run(require_writable())
            await database.run(migrate.check())
    except TimeoutError:
        raise DatabaseUnavailable(f"no response within {DATABASE_TIMEOUT:g} s") from None


class _GroupState:
    """The canaries of one worker group."""

    def __init__(self) -> None:
        self.waiting: UUID | None = None
        self.over: list[UUID] = []
        self.alive_at = monotonic()
        self.latency: float | None = None

    def consumed(self, took: float, ago: float) -> None:
        assert self.waiting is not None
        self.alive_at = monotonic() - ago
        self.latency = took
        self.over, self.waiting = [self.waiting], None
