"""The attempts of one worker under rescues and re-claims: at most one of each job is alive."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from operator import itemgetter
from uuid import UUID

from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule

from forge import Config, Forge, JobContext, ScheduleContext, Worker
from forge.store.statement import Statement
from tests.faults.kit.process import until
from tests.worker.model.machine import DatabaseMachine, run_machine

WORKER = {
    "poll_interval": "10ms",
    "idle_poll_interval": "10ms",
    "dead_after": "1m",
    "metrics_port": "off",
    "max_concurrent": 200,
}
JOBS = ("polite", "deaf", "lingering")
# What a rescuer writes, but for the suspicion: suspects run in processes that this test cannot see.
RESCUE = """
    update forge_jobs set status = 'retry', attempts = attempts - 1, scheduled_at = now()
    where status in ('claimed', 'running')
"""
RESCUE_RUNS = "update forge_schedules set running_since = null where running_since is not null"
UNCLAIMED = """
    select id from forge_jobs where status in ('pending', 'retry')
    union all
    select id from forge_schedules where running_since is null
"""

Attempt = tuple[UUID, int]


class AttemptMachine(DatabaseMachine):
    """Drives a real worker, whose handlers end when the machine opens their gates."""

    url: str

    @initialize()
    def begin(self) -> None:
        self._fetch("truncate forge_jobs, forge_attempts, forge_schedules, forge_workers")
        self.alive: dict[Attempt, asyncio.Event] = {}
        self.overlaps: list[tuple[Attempt, Attempt]] = []
        self.is_ending = False
        self._await(self._start())

    def teardown(self) -> None:
        if hasattr(self, "worker"):
            self._await(self._end())

    @rule(job_type=st.sampled_from(JOBS))
    def dispatch(self, job_type: str) -> None:
        self._await(self.app.dispatch(job_type))

    @rule()
    def ensure(self) -> None:
        self._await(self.app.schedules.ensure("recurring"))

    @rule()
    def rescue(self) -> None:
        """Another worker takes back everything, as after a long pause of this one."""
        self._fetch(RESCUE)
        self._fetch(RESCUE_RUNS)

    @rule()
    def claim(self) -> None:
        """Wait until the worker has claimed all there is, and a handler of each job is alive."""
        self._await(until(self._has_claimed_all, 20, "everything is claimed"))
        self._await(until(self._runs_all, 20, "every claimed job has a live handler"))

    @rule(which=st.integers(0, 9))
    def end_handler(self, which: int) -> None:
        if self.alive:
            gates = [gate for _, gate in sorted(self.alive.items(), key=itemgetter(0))]
            gates[which % len(gates)].set()

    @invariant()
    def at_most_one_attempt_of_a_job_is_alive(self) -> None:
        if hasattr(self, "worker"):
            assert self.overlaps == []

    @invariant()
    def every_live_handler_is_tracked(self) -> None:
        if hasattr(self, "worker"):
            assert self.alive.keys() <= self.worker.runner.running.keys()

    @invariant()
    def an_attempt_is_stopped_when_its_worker_has_a_newer_one(self) -> None:
        if hasattr(self, "worker"):
            running = self.worker.runner.running
            newest = dict(sorted(running))
            for (job_id, lease), attempt in running.items():
                context = attempt.context
                # A run of a schedule may be claimed before the answer to the commit of the former.
                is_stopped = context.cancelled or context.completed or context.is_committing
                assert is_stopped or lease == newest[job_id]

    async def _start(self) -> None:
        self.app = Forge(Config(worker=WORKER), database_url=self.url)
        for handler in (self.polite, self.deaf, self.lingering):
            self.app.job(handler)
        self.app.schedule("recurring")(self.recurring)
        self.worker = Worker(self.app)
        self.running = asyncio.create_task(self.worker.run())
        await asyncio.wait_for(self.worker.started.wait(), 30)

    async def _end(self) -> None:
        self.is_ending = True
        for gate in self.alive.values():
            gate.set()
        self.worker.release()
        await asyncio.wait_for(self.running, 30)
        await self.app.close()

    async def _has_claimed_all(self) -> bool:
        return not await self.database.run(Statement(UNCLAIMED, (), list))

    def _runs_all(self) -> bool:
        claimed = {job_id for job_id, _ in self.worker.runner.running}
        return claimed <= {job_id for job_id, _ in self.alive}

    async def polite(self, ctx: JobContext) -> None:
        with self._told(ctx) as gate:
            await gate.wait()

    async def deaf(self, ctx: JobContext) -> None:
        with self._told(ctx) as gate:
            await _in_spite_of_cancel(gate)

    async def lingering(self, ctx: JobContext) -> None:
        with self._told(ctx) as gate:
            await gate.wait()
            async with ctx.complete_in_transaction():
                pass

    async def recurring(self, ctx: ScheduleContext) -> None:
        """Be due again as soon as it has completed, and go on."""
        with self._told(ctx) as gate:
            async with ctx.complete_in_transaction(timedelta(0)):
                pass
            await _in_spite_of_cancel(gate)

    @contextmanager
    def _told(self, ctx: JobContext) -> Iterator[asyncio.Event]:
        attempt = ctx.job_id, ctx.lease
        self.overlaps += [(other, attempt) for other in self.alive if other[0] == ctx.job_id]
        self.alive[attempt] = asyncio.Event()
        if self.is_ending:
            self.alive[attempt].set()
        try:
            yield self.alive[attempt]
        finally:
            del self.alive[attempt]


async def _in_spite_of_cancel(gate: asyncio.Event) -> None:
    while not gate.is_set():
        try:
            await gate.wait()
        except asyncio.CancelledError:
            continue


def test_at_most_one_attempt_of_a_job_or_schedule_is_alive_in_a_worker(database_url: str) -> None:
    AttemptMachine.url = database_url
    run_machine(AttemptMachine, database_url, examples=20, steps=20)
