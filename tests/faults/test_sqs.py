"""A hostile SQS: messages are lost, repeated, delayed and mixed up, and workers are killed."""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import Iterator
from uuid import uuid4

import boto3
import pytest

from forge import Config, Forge
from tests.faults.apps.mixed import flaky, short
from tests.faults.kit.checker import Verdict, check
from tests.faults.kit.history import History
from tests.faults.kit.ledger import Ledger
from tests.faults.kit.process import until
from tests.faults.kit.worker_processes import WorkerProcess, Workers
from tests.transports.conftest import REGION, transport, waiting
from tests.transports.hostile import Faults, Hostile, moto_server

PACE = {"heartbeat_interval": "500ms", "dead_after": "4s", "stale_threshold": "8s"}
BAD = {"dropped": 0.1, "repeated": 0.1, "refused": 0.02, "longest_delay": 2, "mixed": True}
QUEUES = [f"lane-{n}" for n in range(4)]
WAVE = 100
DISPATCHED = "select id from forge_jobs where queue <> 'forge'"
COMPLETED = "select count(*) from forge_jobs where status = 'completed'"
USED_UP = """
    select count(*) from forge_jobs
    where attempts <> case job_type when 'flaky' then 3 else 1 end
"""


@pytest.fixture
def seed() -> int:
    """The seed from the environment, or a new one; the run prints it."""
    return int(os.environ.get("FAULTS_SEED") or random.randrange(1_000_000))


@pytest.fixture
def hostile(seed: int) -> Iterator[Hostile]:
    os.environ |= {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing"}
    with moto_server() as address, Hostile(address, seed) as proxy:
        yield proxy


@pytest.mark.timeout(300)
async def test_a_hostile_queue_does_not_change_the_results(
    database_url: str,
    workers: Workers,
    history: History,
    ledger: Ledger,
    hostile: Hostile,
    seed: int,
) -> None:
    storm = Storm(database_url, workers, history, ledger, hostile, seed)

    verdict = await storm.run(jobs=200)

    assert not verdict.faults, f"seed {seed}: {verdict}"


@pytest.mark.slow
@pytest.mark.timeout(3600)
async def test_ten_thousand_jobs_through_a_hostile_queue(
    database_url: str,
    workers: Workers,
    history: History,
    ledger: Ledger,
    hostile: Hostile,
    seed: int,
) -> None:
    storm = Storm(database_url, workers, history, ledger, hostile, seed)

    verdict = await storm.run(jobs=int(os.environ.get("FAULTS_JOBS", "10000")))

    assert not verdict.faults, f"seed {seed}: {verdict}"


async def test_the_checker_catches_a_claim_that_trusts_its_message(
    database_url: str,
    workers: Workers,
    history: History,
    ledger: Ledger,
    hostile: Hostile,
    seed: int,
) -> None:
    storm = Storm(database_url, workers, history, ledger, hostile, seed)
    hostile.faults.repeated = 1
    # With one slot each they take one message at a time, so the duplicate goes to the other.
    for _ in range(2):
        await storm.start_worker(broken="claim on hearsay", slots=1)

    await storm.app.dispatch_many(short, [{"seconds": 1}] * 8, queue=QUEUES[0])
    await storm.until_completed(8)
    await storm.app.close()

    assert (await storm.verdict()).overlapping


class Storm:
    """One run: jobs, three workers, two outages and two kills, at fixed fractions of the jobs."""

    def __init__(
        self,
        database_url: str,
        workers: Workers,
        history: History,
        ledger: Ledger,
        hostile: Hostile,
        seed: int,
    ) -> None:
        self.workers = workers
        self.history = history
        self.ledger = ledger
        self.hostile = hostile
        self.dice = random.Random(seed)
        self.looking = asyncio.Lock()  # a connection runs one query at a time
        self.sqs = boto3.client("sqs", endpoint_url=hostile.upstream.geturl(), region_name=REGION)
        self.queues = {name: self._make_queue() for name in QUEUES}
        routes = [{"queue_url": url, "queues": [name]} for name, url in self.queues.items()]
        self.transport = transport(hostile.url, None, routes=routes, locked_timeout="8s")
        self.app = Forge(Config(transport=self.transport), database_url=database_url)
        self.app.register(short, flaky)
        print(f"FAULTS_SEED={seed}")

    async def run(self, jobs: int) -> Verdict:
        self.hostile.faults = Faults(**BAD)
        workers = [await self.start_worker() for _ in range(3)]
        began = time.monotonic()
        dispatching = asyncio.create_task(self._dispatch(jobs))

        await self.until_completed(jobs * 0.1)
        await self._outage()
        await self.until_completed(jobs * 0.3)
        workers[0].sigkill()
        await self.start_worker()
        await self.until_completed(jobs * 0.5)
        await self._outage()
        await self.until_completed(jobs * 0.7)
        workers[1].sigkill()
        await self.start_worker()
        await self.until_completed(jobs)
        await dispatching

        seconds = time.monotonic() - began
        verdict = await self.verdict()
        await self._check_end_state()
        print(f"{jobs} jobs in {seconds:.1f} s: {verdict}\n{dict(self.hostile.counts)}")
        return verdict

    async def verdict(self) -> Verdict:
        for row in await self.ledger.connection.fetch(DISPATCHED):
            self.history.dispatched(row["id"])
        return check(self.history.events(), await self.ledger.rows(), self.workers.halts)

    async def _dispatch(self, jobs: int) -> None:
        """Dispatch in waves: moto's calls take longer the longer its queue is."""
        for done in range(0, jobs, WAVE):
            await self.until_completed(done - 2 * WAVE)
            queue = QUEUES[done // WAVE % len(QUEUES)]
            inputs = [{"seconds": self.dice.expovariate(1 / 0.01)} for _ in range(WAVE * 9 // 10)]
            await self.app.dispatch_many(short, inputs, queue=queue)
            for _ in range(WAVE // 10):
                await self.app.dispatch(flaky, {"seconds": 0.01}, queue=queue)
        await self.app.close()

    async def _outage(self) -> None:
        """Reject all requests until every worker has seen several errors."""
        self.hostile.faults.is_down = True
        since = self.hostile.counts["turned away"]
        await until(
            lambda: self.hostile.counts["turned away"] > since + 20, 60, "the outage is felt"
        )
        self.hostile.faults.is_down = False

    async def _check_end_state(self) -> None:
        """Check that faults used no attempt, no message remains, and workers exit cleanly."""
        assert await self.ledger.connection.fetchval(USED_UP) == 0
        for url in self.queues.values():
            await until(lambda url=url: waiting(self.sqs, url) == 0, 120, "no message is left")
        await until(self._outbox_is_empty, 60, "the outbox is empty")
        alive = [worker for worker in self.workers.processes if worker.is_alive]
        for worker in alive:
            worker.sigterm()
        assert [await worker.ended(60) for worker in alive] == [0] * len(alive)

    async def until_completed(self, jobs: float) -> None:
        async def are_completed() -> bool:
            return await self._count() >= jobs

        await until(are_completed, 1800, f"{jobs} jobs are completed")

    async def _count(self) -> int:
        async with self.looking:
            return await self.ledger.connection.fetchval(COMPLETED)

    async def _outbox_is_empty(self) -> bool:
        return await self.ledger.connection.fetchval("select count(*) from forge_outbox") == 0

    def _make_queue(self) -> str:
        url: str = self.sqs.create_queue(QueueName=f"forge-{uuid4().hex}")["QueueUrl"]
        return url

    async def start_worker(self, broken: str | None = None, slots: int = 16) -> WorkerProcess:
        return await self.workers.start(
            max_concurrent=slots, transport=self.transport, broken=broken, **PACE
        )
