"""Delays by message: SQS counts whole seconds, and a job starts when it is due all the same."""

from collections.abc import Callable
from typing import Any

import asyncpg
import pytest

from forge import Forge, JobContext, Retry
from tests.apps import MakeApp, Work
from tests.faults.kit.process import until
from tests.transports.conftest import transport, waiting
from tests.transports.hostile import Hostile

LATENESS = """
    select extract(epoch from started_at - scheduled_at)::float8 from forge_jobs where id = $1
"""


async def test_the_delay_of_a_message_is_rounded_down(
    make_app: MakeApp, work: Work, hostile: Hostile, queue: str
) -> None:
    app = make_app(transport=transport(hostile.url, queue))

    @app.job
    async def echo(ctx: JobContext) -> None: ...

    await work(app)
    await app.dispatch(echo, delay="5900ms")

    await until(lambda: hostile.delays, 20, "the message is sent")
    assert hostile.delays == [5]


async def test_the_rest_of_a_delay_is_waited_for_before_the_claim(
    make_app: MakeApp, work: Work, hostile: Hostile, queue: str, psql: "asyncpg.Connection[Any]"
) -> None:
    app = make_app(transport=transport(hostile.url, queue))

    @app.job
    async def echo(ctx: JobContext) -> None: ...

    await work(app)
    handle = await app.dispatch(echo, delay="300ms")
    # A message that was not held would be seen again after its visibility timeout alone.
    await handle.result(timeout=20)

    assert await psql.fetchval(LATENESS, handle.id) >= 0
    assert hostile.delays == [0]


async def test_a_backoff_of_less_than_a_second_takes_no_second(
    make_app: MakeApp, work: Work, hostile: Hostile, queue: str, psql: "asyncpg.Connection[Any]"
) -> None:
    app = make_app(transport=transport(hostile.url, queue))

    @app.job(retry=Retry(max_attempts=2, backoff="fixed", max_backoff="300ms"))
    async def flaky(ctx: JobContext) -> None:
        if ctx.attempt == 1:
            raise ConnectionError("not yet")

    await work(app)
    handle = await app.dispatch(flaky)
    await handle.result(timeout=20)

    assert await psql.fetchval(LATENESS, handle.id) >= 0
    assert hostile.delays == [0, 0]


async def test_a_message_without_a_time_is_held_until_its_job_is_due(
    sqs_app: Forge, work: Work, psql: "asyncpg.Connection[Any]", sqs: Any, queue: str
) -> None:
    @sqs_app.job
    async def echo(ctx: JobContext) -> None: ...

    worker = await work(sqs_app)
    await sqs_app.dispatch(echo, delay="1h")
    handle = await sqs_app.dispatch(echo, delay="1h")
    await psql.execute("truncate forge_outbox")
    await psql.execute(
        "update forge_jobs set scheduled_at = clock_timestamp() + interval '900 ms' where id = $1",
        handle.id,
    )
    await psql.execute("truncate forge_outbox")
    sqs.send_message(QueueUrl=queue, MessageBody=f'{{"job_id": "{handle.id}"}}')
    await handle.result(timeout=20)

    assert await psql.fetchval(LATENESS, handle.id) >= 0
    assert worker.transport.receiver.hears()


async def test_early_messages_leave_half_of_the_slots_to_jobs_that_are_due(
    make_sqs_app: Callable[..., Forge], work: Work
) -> None:
    app = make_sqs_app(max_concurrent=2)
    ran: list[str] = []

    @app.job
    async def echo(ctx: JobContext, input: dict[str, str]) -> None:
        ran.append(input["n"])

    await work(app)
    late = [await app.dispatch(echo, {"n": "late"}, delay="900ms") for _ in range(4)]
    await app.dispatch(echo, {"n": "due"})

    for handle in late:
        await handle.result(timeout=30)
    assert ran == ["due", *["late"] * 4]


@pytest.mark.parametrize("due_at", ["null", '"soon"', "NaN", "1e999", "true", "[]"])
async def test_a_time_that_is_none_is_ignored(
    sqs_app: Forge, work: Work, psql: "asyncpg.Connection[Any]", sqs: Any, queue: str, due_at: str
) -> None:
    @sqs_app.job
    async def echo(ctx: JobContext) -> str:
        return "ran"

    handle = await sqs_app.dispatch(echo)
    await psql.execute("truncate forge_outbox")
    await work(sqs_app)
    body = f'{{"job_id": "{handle.id}", "due_at": {due_at}}}'
    sqs.send_message(QueueUrl=queue, MessageBody=body)

    assert await handle.result(timeout=20) == "ran"


async def test_a_worker_that_stops_gives_its_early_messages_back_at_once(
    make_sqs_app: Callable[..., Forge], work: Work, sqs: Any, queue: str
) -> None:
    app = make_sqs_app({"visibility_timeout": "1h"})

    @app.job
    async def echo(ctx: JobContext) -> str:
        return "ran"

    first = await work(app)
    handle = await app.dispatch(echo, delay="950ms")
    await until(lambda: first.transport.receiver.reserved == 1, 20, "the message is held")
    first.drain()
    await until(lambda: _is_visible(sqs, queue), 20, "it is visible")
    assert waiting(sqs, queue) == 1

    await work(app)
    assert await handle.result(timeout=20) == "ran"


def _is_visible(sqs: Any, queue: str) -> bool:
    names = ["ApproximateNumberOfMessages"]
    found = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=names)["Attributes"]
    return bool(int(found[names[0]]))
