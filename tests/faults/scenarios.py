"""Scenarios that run on the real engine and on engines that are broken on purpose."""

from __future__ import annotations

from uuid import UUID

from forge import Forge
from tests.faults.apps.handlers import blocking, gated, quick
from tests.faults.kit.checker import Verdict, check
from tests.faults.kit.history import History, Kind
from tests.faults.kit.ledger import Gate, Ledger, events_of, until_started
from tests.faults.kit.process import until
from tests.faults.kit.proxy import Proxy
from tests.faults.kit.worker_processes import WorkerProcess, Workers

# A statement that only the listening connection sends.
LISTENING = 'listen "forge_wake"'


class Scenario:
    """Runs a fault; `broken` names the way in which the workers are broken."""

    def __init__(self, app: Forge, workers: Workers, history: History, ledger: Ledger) -> None:
        self.app = app
        self.workers = workers
        self.history = history
        self.ledger = ledger
        self.job: UUID

    async def zombie(
        self, gate: Gate, broken: str | None = None
    ) -> tuple[WorkerProcess, WorkerProcess]:
        """A worker is paused until it counts as dead, then finishes a job that another one owns."""
        self.job = (await self.app.dispatch(gated, gate.input)).id
        self.history.dispatched(self.job)
        zombie = await self.workers.start(broken=broken)
        await until_started(self.history, self.job)
        zombie.sigstop()
        successor = await self.workers.start(broken=broken)
        await until_started(self.history, self.job, lease=2)

        gate.open(lease=1)
        zombie.sigcont()
        await until(
            lambda: zombie.reported("refused") or events_of(self.history, self.job, Kind.ACCEPTED),
            30,
            "the zombie's ack was answered",
        )
        gate.open()
        await self.ledger.until_final([self.job])
        return zombie, successor

    async def blocked_loop(self, seconds: float, broken: str | None = None) -> Verdict:
        """A handler blocks its worker's event loop for longer than `dead_after`."""
        job = await self.app.dispatch(blocking, {"seconds": seconds})
        self.history.dispatched(job.id)
        await self.workers.start(broken=broken)
        await until_started(self.history, job.id)
        await self.workers.start(broken=broken)
        await self.ledger.until_final([job.id], timeout=60)
        return await self.verdict()

    async def live_neighbour(self, gate: Gate, broken: str | None = None) -> Verdict:
        """Two workers run side by side while one of them is busy."""
        job = await self.app.dispatch(gated, gate.input)
        self.history.dispatched(job.id)
        await self.workers.start(broken=broken)
        await until_started(self.history, job.id)
        other = await self.workers.start(broken=broken)
        # By then it has checked the other worker's heartbeats at least twice.
        await self.ledger.until_beating(other.id, 15)
        gate.open()
        await self.ledger.until_final([job.id], timeout=60)
        return await self.verdict()

    async def silent_listener(
        self, proxy: Proxy, broken: str | None = None, *, timeout: float = 12
    ) -> None:
        """The listening connection dies silently; then a job is dispatched."""
        worker = await self.workers.start(url=proxy.url(), broken=broken, idle_poll_interval="2s")
        await until(self._listens, 30, "the worker listens")
        await self.ledger.until_beating(worker.id, 3)
        assert proxy.silence(matching=LISTENING) == 1
        job = await self.app.dispatch(quick)
        self.job = job.id
        await self.ledger.until_status(job.id, "completed", timeout=timeout)
        assert worker.is_alive

    async def _listens(self) -> bool:
        listening = (
            "select count(*) from pg_stat_activity where datname = current_database() "
            "and query ilike 'listen \"forge_worker_%'"
        )
        return bool(await self.ledger.connection.fetchval(listening))

    async def verdict(self) -> Verdict:
        return check(self.history.events(), await self.ledger.rows(), self.workers.halts)
