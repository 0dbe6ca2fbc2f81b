"""Courses of events that both the sound engine and its broken variants are put through."""

from __future__ import annotations

from uuid import UUID

from forge import Forge
from tests.faults.apps.handlers import blocking, gated, quick
from tests.faults.kit.checker import Verdict, check
from tests.faults.kit.crew import Crew, WorkerProcess
from tests.faults.kit.history import History, Kind
from tests.faults.kit.ledger import Gate, Ledger, told, until_started
from tests.faults.kit.process import until
from tests.faults.kit.proxy import Proxy

# What only the listening connection says.
LISTENING = 'listen "forge_wake"'


class Scene:
    """A stage on which a fault is played; `broken` names how its workers are spoilt."""

    def __init__(self, app: Forge, crew: Crew, history: History, ledger: Ledger) -> None:
        self.app = app
        self.crew = crew
        self.history = history
        self.ledger = ledger
        self.job: UUID

    async def zombie(
        self, gate: Gate, broken: str | None = None
    ) -> tuple[WorkerProcess, WorkerProcess]:
        """A worker sleeps past its death, wakes up and finishes what is another's by now."""
        self.job = (await self.app.dispatch(gated, gate.input)).id
        self.history.dispatched(self.job)
        zombie = await self.crew.start(broken=broken)
        await until_started(self.history, self.job)
        zombie.sigstop()
        heir = await self.crew.start(broken=broken)
        await until_started(self.history, self.job, lease=2)

        gate.open(lease=1)
        zombie.sigcont()
        await until(
            lambda: zombie.said("refused") or told(self.history, self.job, Kind.ACCEPTED),
            30,
            "the zombie's ack was answered",
        )
        gate.open()
        await self.ledger.until_final([self.job])
        return zombie, heir

    async def blocked_loop(self, seconds: float, broken: str | None = None) -> Verdict:
        """A handler holds up its worker's loop for longer than a dead worker is waited for."""
        job = await self.app.dispatch(blocking, {"seconds": seconds})
        self.history.dispatched(job.id)
        await self.crew.start(broken=broken)
        await until_started(self.history, job.id)
        await self.crew.start(broken=broken)
        await self.ledger.until_final([job.id], timeout=60)
        return await self.verdict()

    async def living_neighbour(self, gate: Gate, broken: str | None = None) -> Verdict:
        """Two workers live side by side while one of them is busy."""
        job = await self.app.dispatch(gated, gate.input)
        self.history.dispatched(job.id)
        await self.crew.start(broken=broken)
        await until_started(self.history, job.id)
        other = await self.crew.start(broken=broken)
        # It has judged its neighbour by then: two steady spans after it began.
        await self.ledger.until_beating(other.id, 15)
        gate.open()
        await self.ledger.until_final([job.id], timeout=60)
        return await self.verdict()

    async def silent_listener(
        self, proxy: Proxy, broken: str | None = None, *, patience: float = 12
    ) -> None:
        """The listening connection dies without a sound; then something is dispatched."""
        worker = await self.crew.start(url=proxy.url(), broken=broken, idle_poll_interval="2s")
        await until(self._listens, 30, "the worker listens")
        await self.ledger.until_beating(worker.id, 3)
        assert proxy.silence(matching=LISTENING) == 1
        job = await self.app.dispatch(quick)
        self.job = job.id
        await self.ledger.until_status(job.id, "completed", timeout=patience)
        assert worker.is_alive

    async def _listens(self) -> bool:
        listening = (
            "select count(*) from pg_stat_activity where datname = current_database() "
            "and query ilike 'listen \"forge_worker_%'"
        )
        return bool(await self.ledger.connection.fetchval(listening))

    async def verdict(self) -> Verdict:
        return check(self.history.events(), await self.ledger.rows(), self.crew.halts)
