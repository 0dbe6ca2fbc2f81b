"""A seeded run that combines all job types with random faults."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from uuid import UUID

import asyncpg

from forge import Config, DatabaseUnavailable, Forge, JobDefinition
from tests.faults.apps.mixed import flaky, reporting, short, short_in_process, short_in_thread
from tests.faults.kit.checker import Verdict, check
from tests.faults.kit.history import Event, History, Kind
from tests.faults.kit.ledger import Ledger
from tests.faults.kit.process import until
from tests.faults.kit.statistics_checker import compare
from tests.faults.kit.worker_processes import WorkerProcess, Workers

# Long enough that a worker on a busy machine is not declared dead.
PACE = {"heartbeat_interval": "500ms", "dead_after": "4s", "stale_threshold": "8s"}
LONGEST_PAUSE = 8.0
# Dispatches at the same time.
CONCURRENT = 6
WEIGHTS: dict[JobDefinition[None, None], int] = {
    short: 10,
    short_in_thread: 4,
    flaky: 3,
    reporting: 2,
    short_in_process: 1,
}
FINAL = "('completed', 'failed', 'dead_letter', 'cancelled')"
Fault = Callable[["Chaos"], Awaitable[None]]


@dataclass(frozen=True)
class Plan:
    """The parameters of a run; the seed determines the rest."""

    seed: int
    jobs: int
    seconds: float
    faults: tuple[Fault, ...]
    # Faults that occur once, each at a fraction of the time.
    once: tuple[tuple[float, Fault], ...] = ()
    workers: int = 3


@dataclass
class DispatchCall:
    """One dispatch: its mark in the job's input, and its result."""

    mark: str
    sent_at: float
    job: UUID | None = None
    answered_at: float = 0.0


@dataclass
class Chaos:
    """A run in progress; faults act on it."""

    plan: Plan
    database_url: str
    workers: Workers
    history: History
    random: random.Random = field(init=False)
    calls: list[DispatchCall] = field(default_factory=list)
    paused: set[WorkerProcess] = field(default_factory=set)
    background: set[asyncio.Task[None]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.random = random.Random(self.plan.seed)

    async def run(self) -> Verdict:
        """Dispatch jobs and inject faults; then wait for all jobs and check the history."""
        for _ in range(self.plan.workers):
            await self.start_worker()
        dispatching = asyncio.create_task(self._dispatch())
        await self._break_things()
        await dispatching
        await asyncio.gather(*self.background)
        verdict = await self._judge()
        for worker in self.healthy:
            worker.sigterm()
            assert await worker.ended(60) == 0, worker.output()
        await self._check_statistics()
        return verdict

    @property
    def healthy(self) -> list[WorkerProcess]:
        return [w for w in self.workers.processes if w.is_alive and w not in self.paused]

    async def start_worker(self) -> None:
        await self.workers.start(max_concurrent=8, **PACE)

    def run_in_background(self, act: Awaitable[None]) -> None:
        task = asyncio.ensure_future(act)
        self.background.add(task)
        task.add_done_callback(self.background.discard)

    async def _dispatch(self) -> None:
        app = Forge(Config(), database_url=self.database_url)
        dice = random.Random(f"{self.plan.seed} jobs")
        started = time.monotonic()
        for first in range(0, self.plan.jobs, CONCURRENT):
            due = started + first * self.plan.seconds / self.plan.jobs
            await asyncio.sleep(max(0.0, due - time.monotonic()))  # spread over the whole run
            numbers = range(first, min(first + CONCURRENT, self.plan.jobs))
            # Those without a key share an insert.
            await asyncio.gather(*(self._dispatch_one(app, number, dice) for number in numbers))
        await app.close()

    async def _dispatch_one(self, app: Forge, number: int, dice: random.Random) -> None:
        call = DispatchCall(f"call {number}", time.monotonic())
        self.calls.append(call)
        (definition,) = dice.choices(list(WEIGHTS), list(WEIGHTS.values()))
        input = {"mark": call.mark, "seconds": dice.expovariate(1 / 0.02)}
        options = {"idempotency_key": call.mark} if dice.random() < 0.5 else {}
        while call.job is None:
            try:
                call.job = (await app.dispatch(definition, input, **options)).id
                call.answered_at = time.monotonic()
            except DatabaseUnavailable:
                if not options:
                    return  # it may exist or not: without a key a retry could create a second job
                await asyncio.sleep(0.05)  # as a client that retries

    async def _break_things(self) -> None:
        end = time.monotonic() + self.plan.seconds
        once = [(end - (1 - share) * self.plan.seconds, act) for share, act in self.plan.once]
        while once or time.monotonic() < end:
            await asyncio.sleep(self.random.uniform(0.5, 1.5))  # faults occur at random moments
            if once and time.monotonic() >= once[0][0]:
                await once.pop(0)[1](self)
            else:
                await self.random.choice(self.plan.faults)(self)

    async def _judge(self) -> Verdict:
        connection = await asyncpg.connect(self.database_url)
        try:
            await until(
                lambda: _all_final(connection), 120, f"all jobs are final\n{self.workers.log()}"
            )
            events = self.history.events()
            events += await self._dispatches(connection) + await _ends(connection, events)
            rows = await Ledger(connection).rows()
            # Each job has enough attempts to survive all faults.
            assert {row.status for row in rows} == {"completed"}
            return check(events, rows, self.workers.halts)
        finally:
            await connection.close()

    async def _check_statistics(self) -> None:
        connection = await asyncpg.connect(self.database_url)
        try:
            # They are written at intervals of 9 to 11 seconds.
            found = await compare(connection, self.workers.processes, unwritten=12.0)
            assert not found.faults, f"seed {self.plan.seed}: {found}"
        finally:
            await connection.close()

    async def _dispatches(self, connection: asyncpg.Connection) -> list[Event]:
        rows = await connection.fetch("select id, input ->> 'mark' as mark from forge_jobs")
        known = {row["mark"]: row["id"] for row in rows}
        assert len(known) == len(rows), "a job was dispatched twice"
        events = []
        for call in self.calls:
            job = str(call.job or known.get(call.mark, call.mark))
            events.append(Event(Kind.DISPATCHING, job, monotonic=call.sent_at))
            if call.job is not None:
                events.append(Event(Kind.DISPATCHED, job, monotonic=call.answered_at))
        return events


async def _all_final(connection: asyncpg.Connection) -> bool:
    left = f"select count(*) from forge_jobs where status not in {FINAL}"
    return await connection.fetchval(left) == 0


async def _ends(connection: asyncpg.Connection, events: list[Event]) -> list[Event]:
    """Outcomes that the database accepted although the worker lost the answer."""
    recorded = {(event.job, event.lease) for event in events if event.kind == Kind.ACCEPTED}
    rows = await connection.fetch(
        "select job_id, lease from forge_attempts where outcome in ('retry', 'crashed')"
    )
    known = ((str(row["job_id"]), row["lease"]) for row in rows)
    return [Event(Kind.ACCEPTED, *end, status="retry") for end in known if end not in recorded]
