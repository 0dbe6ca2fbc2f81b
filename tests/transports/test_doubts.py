"""Messages that SQS delivers again, and jobs without a heartbeat for a long time."""

import asyncio
from typing import Any
from uuid import uuid4

import asyncpg

from forge import JobContext
from forge.core.events import AttemptLost, Event
from forge.core.lifecycle import Status
from forge.transports.sqs.sender import LONG, SENDS_IN_DOUBT
from tests.apps import MakeApp, Work
from tests.faults.kit.process import until
from tests.store.placing import placed
from tests.transports.conftest import transport, waiting
from tests.transports.handlers import rest
from tests.transports.hostile import Hostile


async def test_a_message_that_is_shown_again_to_its_own_worker_is_kept(
    make_app: MakeApp, work: Work, hostile: Hostile, sqs: Any, queue: str
) -> None:
    app = make_app(transport=transport(hostile.url, queue, visibility_timeout="3s"))
    hostile.faults.hides_nothing = True
    gate, attempts = asyncio.Event(), []

    @app.job
    async def slow(ctx: JobContext) -> None:
        attempts.append(ctx.attempt)
        await gate.wait()

    await work(app)
    handle = await app.dispatch(slow)
    await until(lambda: hostile.counts["received"] >= 3, 30, "it was received again and again")

    assert waiting(sqs, queue) == 1
    gate.set()
    await handle.result(timeout=20)
    await until(lambda: waiting(sqs, queue) == 0, 20, "its last receipt deletes it")
    assert attempts == [1]


async def test_a_long_queue_is_not_filled_with_the_same_again(
    make_app: MakeApp,
    work: Work,
    hostile: Hostile,
    sqs: Any,
    queue: str,
    psql: "asyncpg.Connection[Any]",
) -> None:
    app = make_app(transport=transport(hostile.url, queue, resend_after="200ms"))

    @app.job
    async def echo(ctx: JobContext) -> None: ...

    for number in range(LONG + 1):
        sqs.send_message(QueueUrl=queue, MessageBody=f"another sender's {number}")
    worker = await work(app)
    await worker.transport.receiver.stop()

    async def sends() -> int:
        return await psql.fetchval("select max(sends) from forge_outbox") or 0

    async def are_many(count: int) -> bool:
        return await sends() >= count

    await app.dispatch(echo)
    await until(lambda: are_many(SENDS_IN_DOUBT - 1), 30, "it is doubted")
    assert hostile.counts["sent"] == 1

    await until(lambda: hostile.counts["sent"] == 2, 30, "it is sent all the same")
    assert await sends() >= SENDS_IN_DOUBT


async def test_an_attempt_that_a_message_finds_abandoned_is_reported_as_lost(
    make_app: MakeApp,
    work: Work,
    aws: str,
    sqs: Any,
    queue: str,
    psql: "asyncpg.Connection[Any]",
) -> None:
    app = make_app(transport=transport(aws, queue, locked_timeout="10m"))
    app.register(rest)
    events: list[Event] = []
    app.events.listeners.append(events.append)
    job_id = await placed(psql, Status.RUNNING, worker=uuid4(), job_type="rest", tenant_id=7)
    await psql.execute(
        "update forge_jobs set claimed_at = now() - interval '11 m', "
        "started_at = now() - interval '11 m', last_heartbeat = null"
    )

    await work(app)
    sqs.send_message(QueueUrl=queue, MessageBody=f'{{"job_id": "{job_id}"}}')
    await app.handle(job_id).result(timeout=30)

    (lost,) = [event for event in events if isinstance(event, AttemptLost)]
    assert (lost.id, lost.type, lost.attempt, lost.tenant_id) == (job_id, "rest", 1, 7)
    assert 660 <= lost.seconds < 720
