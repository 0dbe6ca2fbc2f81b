"""Jobs announced through SQS: dispatched in every way, run once, announced again when lost."""

import asyncio
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import asyncpg
import pytest

from forge import Forge, JobContext, NonRetryable, Retry
from forge.core.events import Event
from tests.apps import MakeApp, Work
from tests.faults.kit.process import until
from tests.transports.conftest import waiting


@pytest.fixture
def ran() -> list[Any]:
    return []


def with_echo(app: Forge, ran: list[Any]) -> Forge:
    @app.job
    async def echo(ctx: JobContext, input: dict) -> Any:
        ran.append(input["n"])
        return input["n"]

    return app


async def test_a_job_runs_and_its_message_is_gone(
    sqs_app: Forge, work: Work, ran: list[Any], sqs: Any, queue: str
) -> None:
    with_echo(sqs_app, ran)
    await work(sqs_app)

    handle = await sqs_app.dispatch("echo", {"n": 1})

    assert await handle.result(timeout=20) == 1
    await until(lambda: waiting(sqs, queue) == 0, 20, "the message is deleted")
    assert ran == [1]


async def test_every_way_of_dispatching_leads_to_a_message(
    sqs_app: Forge, work: Work, ran: list[Any], psql: asyncpg.Connection
) -> None:
    with_echo(sqs_app, ran)
    await work(sqs_app)

    await sqs_app.dispatch("echo", {"n": "one"})
    await sqs_app.dispatch("echo", {"n": "keyed"}, idempotency_key="k")
    await sqs_app.dispatch_many("echo", ({"n": f"copied {n}"} for n in range(3)))
    async with psql.transaction():
        await sqs_app.dispatch("echo", {"n": "in a transaction"}, conn=psql)
        await psql.execute("""select forge_dispatch('echo', '{"n": "from SQL"}')""")
    wanted = {"one", "keyed", "in a transaction", "from SQL", *(f"copied {n}" for n in range(3))}

    await until(lambda: set(ran) == wanted, 20, "all of them ran")
    assert await psql.fetchval("select max(lease) from forge_jobs") == 1


async def test_what_was_rolled_back_sends_nothing(
    sqs_app: Forge, work: Work, ran: list[Any], psql: asyncpg.Connection
) -> None:
    with_echo(sqs_app, ran)
    await work(sqs_app)

    transaction = psql.transaction()
    await transaction.start()
    await sqs_app.dispatch("echo", {"n": "never"}, conn=psql)
    assert await psql.fetchval("select count(*) from forge_outbox") == 1
    await transaction.rollback()

    assert await psql.fetchval("select count(*) from forge_outbox") == 0


async def test_where_postgres_is_the_transport_the_outbox_stays_empty(
    make_app: MakeApp, ran: list[Any], psql: asyncpg.Connection
) -> None:
    app = with_echo(make_app(), ran)

    await app.dispatch("echo", {"n": 1})
    await app.dispatch_many("echo", [{"n": 2}])

    assert await psql.fetchval("select count(*) from forge_outbox") == 0


async def test_a_retry_and_a_delay_come_by_message_too(
    sqs_app: Forge, work: Work, ran: list[Any]
) -> None:
    with_echo(sqs_app, ran)

    @sqs_app.job(retry=Retry(max_attempts=3, backoff="fixed", max_backoff="1s"))
    async def flaky(ctx: JobContext) -> int:
        if ctx.attempt < 3:
            raise ConnectionError("not yet")
        return ctx.attempt

    await work(sqs_app)
    flaky_one = await sqs_app.dispatch(flaky)
    late = await sqs_app.dispatch("echo", {"n": "late"}, delay="1s")

    assert await flaky_one.result(timeout=30) == 3
    assert await late.result(timeout=30) == "late"


async def test_a_job_due_later_than_sqs_can_delay_waits_in_the_outbox(
    sqs_app: Forge, work: Work, ran: list[Any], psql: asyncpg.Connection, sqs: Any, queue: str
) -> None:
    with_echo(sqs_app, ran)
    await work(sqs_app)

    handle = await sqs_app.dispatch("echo", {"n": 1}, delay="1h")
    wait = await psql.fetchval(
        "select scheduled_at - send_at from forge_outbox join forge_jobs as job on job.id = job_id"
    )
    assert wait.total_seconds() == 900
    await sqs_app.run_now(handle.id)

    assert await handle.result(timeout=20) == 1


async def test_a_job_that_was_dispatched_before_the_outbox_was_on_is_found_by_the_sweeper(
    make_app: MakeApp, sqs_app: Forge, work: Work, ran: list[Any]
) -> None:
    earlier = with_echo(make_app(), [])
    handle = await earlier.dispatch("echo", {"n": "earlier"})

    with_echo(sqs_app, ran)
    await work(sqs_app)

    assert await sqs_app.handle(handle.id).result(timeout=60) == "earlier"


async def test_a_job_whose_message_was_lost_is_told_of_again(
    sqs_app: Forge, work: Work, ran: list[Any], sqs: Any, queue: str, psql: asyncpg.Connection
) -> None:
    with_echo(sqs_app, ran)

    @sqs_app.job
    async def other(ctx: JobContext) -> None: ...

    worker = await work(sqs_app)
    await worker.transport.receiver.stop()  # no worker listens while the message is lost
    handle = await sqs_app.dispatch("echo", {"n": 1})
    await until(lambda: waiting(sqs, queue) == 1, 20, "the message is sent")
    sqs.purge_queue(QueueUrl=queue)

    await until(lambda: waiting(sqs, queue) == 1, 20, "another message is sent")
    assert await psql.fetchval("select sends from forge_outbox") == 2
    assert (await handle.get()).status == "pending"


async def test_a_second_message_of_a_finished_job_changes_nothing(
    sqs_app: Forge, work: Work, ran: list[Any], sqs: Any, queue: str
) -> None:
    with_echo(sqs_app, ran)
    await work(sqs_app)
    handle = await sqs_app.dispatch("echo", {"n": 1})
    await handle.result(timeout=20)

    for _ in range(3):
        sqs.send_message(QueueUrl=queue, MessageBody=f'{{"job_id": "{handle.id}"}}')
    sqs.send_message(QueueUrl=queue, MessageBody=f'{{"job_id": "{uuid4()}"}}')

    await until(lambda: waiting(sqs, queue) == 0, 20, "they are deleted")
    assert ran == [1]


async def test_a_message_that_names_no_job_is_left_alone(
    sqs_app: Forge, work: Work, ran: list[Any], sqs: Any, queue: str
) -> None:
    notices: list[Event] = []
    with_echo(sqs_app, ran).events.listeners.append(notices.append)
    await work(sqs_app)

    sqs.send_message(QueueUrl=queue, MessageBody="hello")
    sqs.send_message(QueueUrl=queue, MessageBody='{"job_id": 7}')

    await until(
        lambda: sum("names no job" in str(notice) for notice in notices) >= 2, 20, "it says so"
    )
    assert waiting(sqs, queue) == 2


async def test_a_message_stays_invisible_while_its_job_runs(
    make_sqs_app: Callable[..., Forge], work: Work, sqs: Any, queue: str
) -> None:
    app = make_sqs_app({"visibility_timeout": "3s"})
    gate, receipts = asyncio.Event(), []

    @app.job
    async def slow(ctx: JobContext) -> int:
        await gate.wait()
        return ctx.attempt

    worker = await work(app)
    hide = worker.transport._queues.hide

    async def counted(messages: Any, seconds: float) -> Any:
        receipts.append(len(messages))
        return await hide(messages, seconds)

    worker.transport._queues.hide = counted
    handle = await app.dispatch(slow)
    await until(lambda: sum(receipts) >= 5, 30, "its visibility was extended for long enough")

    assert "Messages" not in sqs.receive_message(QueueUrl=queue)
    gate.set()
    assert await handle.result(timeout=20) == 1


async def test_a_message_is_deleted_only_after_the_ack_is_durable(
    sqs_app: Forge, work: Work, ran: list[Any], sqs: Any, queue: str, psql: asyncpg.Connection
) -> None:
    gate = asyncio.Event()

    @sqs_app.job
    async def slow(ctx: JobContext) -> None:
        ran.append("began")
        await gate.wait()
        ran.append("ended")

    await work(sqs_app)
    handle = await sqs_app.dispatch(slow)
    await until(lambda: ran == ["began"], 20, "it runs")
    async with psql.transaction():
        await psql.execute("select from forge_jobs where id = $1 for update", handle.id)
        gate.set()
        await until(lambda: ran == ["began", "ended"], 20, "the handler is done")
        await until(
            # Not pg_stat_activity, which shows a transaction the sessions that it saw at first.
            lambda: psql.fetchval("select count(*) from pg_locks where not granted"),
            20,
            "the ack waits",
        )
        assert waiting(sqs, queue) == 1

    await until(lambda: waiting(sqs, queue) == 0, 20, "the message is deleted")


async def test_requests_need_no_message(
    sqs_app: Forge, work: Work, sqs: Any, queue: str, ran: list[Any]
) -> None:
    with_echo(sqs_app, ran)
    await work(sqs_app)
    handle = await sqs_app.dispatch("echo", {"n": 1}, delay="10m")

    await (await sqs_app.cancel(handle.id)).result(timeout=20)

    assert (await handle.get()).status == "cancelled"


async def test_a_job_that_fails_for_good_has_its_message_deleted(
    sqs_app: Forge, work: Work, sqs: Any, queue: str
) -> None:
    @sqs_app.job
    async def broken(ctx: JobContext) -> None:
        raise NonRetryable("never")

    await work(sqs_app)
    handle = await sqs_app.dispatch(broken)

    await until(lambda: _has_status(handle, "dead_letter"), 20, "it is buried")
    await until(lambda: waiting(sqs, queue) == 0, 20, "the message is deleted")


async def test_a_cancelled_job_and_one_that_completed_itself_leave_no_message(
    sqs_app: Forge, work: Work, sqs: Any, queue: str
) -> None:
    @sqs_app.job
    async def endless(ctx: JobContext) -> None:
        await asyncio.Event().wait()

    @sqs_app.job
    async def itself(ctx: JobContext) -> None:
        async with ctx.complete_in_transaction():
            pass

    await work(sqs_app)
    running, done = await sqs_app.dispatch(endless), await sqs_app.dispatch(itself)
    await until(lambda: _has_status(running, "running"), 20, "it runs")

    await sqs_app.cancel(running.id)

    await until(lambda: _has_status(done, "completed"), 20, "it is done")
    await until(lambda: waiting(sqs, queue) == 0, 20, "both messages are deleted")


async def _has_status(handle: Any, status: str) -> bool:
    return (await handle.get()).status == status
