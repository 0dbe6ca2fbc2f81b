"""Whether jobs are really being consumed: a tiny one for each crew, and what became of it."""

import asyncio
from time import monotonic
from typing import TYPE_CHECKING, Literal
from uuid import UUID

from pydantic import BaseModel, Field

from forge.core.crew import crew_name
from forge.core.errors import (
    DatabaseUnavailable,
    ForgeError,
    JobFailed,
    ResultTimeout,
    UnknownJob,
)
from forge.requests import canary_for
from forge.store import jobs, ledger, standing
from forge.store.read_only import require_writable
from forge.store.standing import Crew
from forge.telemetry.instruments import Labels
from forge.telemetry.metrics import ApiMetrics

if TYPE_CHECKING:
    from forge.app import Forge

# How long a canary may take, how old an answer may be, and how often the metrics ask.
PATIENCE = 3.0
FRESH = 10.0
ROUND = 30.0
# How long the database may take to answer.
DATABASE_PATIENCE = 2.0


class CrewOut(BaseModel):
    """Workers with the same capabilities and queues, and whether they consume."""

    crew: str = Field(description="Its capabilities, or `any`; after an @ its queues, if not all.")
    workers: int
    state: Literal["consumes", "busy", "silent"] = Field(
        description="`busy`: every slot is taken, so that the canary waits like any job."
    )
    latency_seconds: float | None = Field(description="How long its last canary took.")


class Canaries:
    """Sends canaries, one at a time for each crew, and remembers what became of them."""

    def __init__(self, app: "Forge", metrics: ApiMetrics) -> None:
        self._app = app
        self._crews: dict[str, _Seen] = {}
        self._reports: list[CrewOut] = []
        self._checked_at = float("-inf")
        self._checking = asyncio.Lock()
        self._round: asyncio.Task[object] | None = None
        metrics.canary_age.read = self._ages
        metrics.canary_latency.read = self._latencies

    async def check(self) -> list[CrewOut]:
        """Say of each crew whether it consumes; a recent answer serves everybody."""
        async with self._checking:
            if monotonic() - self._checked_at > FRESH:
                dead_after = self._app.config.worker.dead_after.total_seconds()
                database = await (await self._app.session()).database()
                crews = await database.run(standing.crews(dead_after))
                names = {crew_name(crew.capabilities, crew.queues): crew for crew in crews}
                self._crews = {name: self._crews.get(name) or _Seen() for name in names}
                self._reports = await asyncio.gather(*map(self._try, names, names.values()))
                self._checked_at = monotonic()
            return self._reports

    async def check_now_and_then(self) -> None:
        """Begin a check in the background, if the last one is old."""
        is_running = self._round is not None and not self._round.done()
        if not is_running and monotonic() - self._checked_at > ROUND:
            if self._round is None:
                (await self._app.session()).on_close(self._stop)
            self._round = asyncio.create_task(self._check_quietly())

    async def _check_quietly(self) -> None:
        try:
            await self.check()
        except ForgeError:
            return  # the age of the last canary tells

    async def _stop(self) -> None:
        if self._round is not None:
            self._round.cancel()

    async def _try(self, name: str, crew: Crew) -> CrewOut:
        seen = self._crews[name]
        if seen.waiting is None:
            handle = await self._app.dispatch(canary_for(name), {"previous": seen.over})
            seen.waiting = handle.id
        try:
            await self._app.handle(seen.waiting).result(PATIENCE)
            took, ago = await self._times(seen.waiting)
            seen.consumed(took, ago)
        except ResultTimeout:
            # A wait survives a lost database, so that the workers are not to blame yet.
            await require_database(self._app)
            # It stays in the queue and is asked about again: those of a silent crew do not pile up.
            state: Literal["busy", "silent"] = "busy" if crew.running >= crew.slots else "silent"
            return CrewOut(crew=name, workers=crew.workers, state=state, latency_seconds=None)
        except (UnknownJob, JobFailed):
            seen.over, seen.waiting = [], None  # the canary was deleted or cancelled
            return CrewOut(crew=name, workers=crew.workers, state="silent", latency_seconds=None)
        if ago > PATIENCE:  # one of an earlier check, which says nothing about the present
            return await self._try(name, crew)
        return CrewOut(crew=name, workers=crew.workers, state="consumes", latency_seconds=took)

    async def _times(self, canary: UUID) -> tuple[float, float]:
        """Return how long a canary took and how long ago it ended, however late this looks."""
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
    """Raise unless the database answers soon, accepts writes and has this version's tables."""
    try:
        async with asyncio.timeout(DATABASE_PATIENCE):
            database = await (await app.session()).database()
            await database.run(require_writable())
            await database.run(ledger.check())
    except TimeoutError:
        raise DatabaseUnavailable(f"no answer within {DATABASE_PATIENCE:g} s") from None


class _Seen:
    """What is known of one crew's canaries."""

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
