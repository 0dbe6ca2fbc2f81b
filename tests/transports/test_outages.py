"""SQS away, slow to take, or refusing: jobs wait in PostgreSQL and run when it is back."""

import asyncio
import threading
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import asyncpg
import pytest

from forge import Forge, JobContext, Worker
from forge.core.events import Event, WorkerNotice
from forge.store import outbox
from forge.store.connection.database import Database
from forge.store.connection.waiting import FIRST_PAUSE
from forge.store.roles import grant_roles
from tests.apps import MakeApp, Work
from tests.faults.kit.process import until
from tests.transports.conftest import transport, waiting
from tests.transports.hostile import Hostile


@pytest.fixture
def app(make_app: MakeApp, hostile: Hostile, queue: str) -> Forge:
    return app_on(make_app, transport(hostile.url, queue))


def app_on(make_app: MakeApp, settings: Any) -> Forge:
    app = make_app(transport=settings)

    @app.job
    async def echo(ctx: JobContext, input: dict) -> Any:
        return input["n"]

    return app


async def test_what_is_dispatched_during_an_outage_runs_after_it(
    app: Forge, work: Work, hostile: Hostile
) -> None:
    await work(app)
    hostile.faults.is_down = True
    handles = [await app.dispatch("echo", {"n": n}) for n in range(5)]
    await until(lambda: hostile.counts["turned away"] > 5, 30, "the outage is felt")

    hostile.faults.is_down = False

    assert [await handle.result(timeout=60) for handle in handles] == list(range(5))


async def test_an_outage_is_said_less_and_less_often_and_kills_nobody(
    app: Forge, work: Work, hostile: Hostile
) -> None:
    said_at: list[float] = []
    levels: set[str] = set()

    def note(event: Event) -> None:
        if isinstance(event, WorkerNotice):
            levels.add(event.level)
            if event.message == "messages cannot be received":
                said_at.append(time.monotonic())

    app.events.listeners.append(note)
    worker = await work(app)
    hostile.faults.is_down = True
    await until(lambda: len(said_at) > 4, 30, "the outage is felt")

    assert worker.heartbeat.is_heard()
    assert levels == {"warning"}
    waits = [later - earlier for earlier, later in pairwise(said_at)]
    # Each pause is twice the one before, give or take a half.
    assert all(wait >= FIRST_PAUSE * 2**n / 2 for n, wait in enumerate(waits))
    hostile.faults.is_down = False


async def test_a_worker_that_is_stopped_while_sqs_does_not_answer_ends_in_order(
    app: Forge, hostile: Hostile
) -> None:
    worker = Worker(app)
    working = asyncio.create_task(worker.run())
    await worker.started.wait()
    hostile.faults.kept_until = end = threading.Event()
    await until(lambda: hostile.counts["kept"], 20, "it waits for messages")

    worker.drain()
    await asyncio.wait_for(worker.transport.receiver.stopped.wait(), 20)
    end.set()

    await asyncio.wait_for(working, 30)


async def test_what_sqs_refuses_of_a_batch_is_sent_again_and_nothing_else(
    make_app: MakeApp, work: Work, hostile: Hostile, sqs: Any, queue: str
) -> None:
    # No worker takes these messages: they look lost, and would be sent again later.
    app = app_on(make_app, transport(hostile.url, queue, resend_after="10m"))
    worker = await work(app)
    await worker.transport.receiver.stop()
    hostile.faults.refused = 0.5

    await app.dispatch_many("echo", ({"n": n} for n in range(20)))
    await until(lambda: hostile.counts["refused"] > 0, 30, "some are refused")
    hostile.faults.refused = 0

    await until(lambda: waiting(sqs, queue) >= 20, 30, "all are sent")
    assert hostile.counts["sent"] - hostile.counts["refused"] == 20


async def test_a_worker_that_may_not_switch_the_outbox_on_says_so_and_works_all_the_same(
    make_app: MakeApp, hostile: Hostile, queue: str, database: Database, work: Work
) -> None:
    await grant_roles(database)
    notices: list[Event] = []
    app = make_app(transport=transport(hostile.url, queue))
    app.database_url = database.url.replace("//forge@", "//forge_worker@")
    app.events.listeners.append(notices.append)

    @app.job
    async def echo(ctx: JobContext, input: dict) -> Any:
        return input["n"]

    await work(app)
    handle = await app.dispatch("echo", {"n": 1})

    assert await handle.result(timeout=60) == 1
    assert sum("forge migrate" in str(notice) for notice in notices) == 1


async def test_the_role_of_the_server_dispatches_with_a_row_in_the_outbox(
    database: Database, psql: asyncpg.Connection
) -> None:
    await grant_roles(database)
    await database.run(outbox.enable())
    await psql.execute("insert into forge_job_types (name) values ('echo')")
    api = await asyncpg.connect(database.url.replace("//forge@", "//forge_api@"))

    await api.execute("set forge.tenant_id = '*'")
    await api.execute("select forge_dispatch('echo')")
    await api.execute("set forge.tenant_id = '7'")
    await api.execute("select forge_dispatch('echo', tenant_id => 7)")

    assert await psql.fetchval("select count(*) from forge_outbox") == 2
    await api.close()


async def test_migrating_switches_the_outbox_as_the_transport_needs_it(
    make_app: MakeApp, make_sqs_app: Callable[..., Forge], database: Database, psql: Any
) -> None:
    await make_sqs_app().migrate()
    assert await database.run(outbox.is_enabled())
    await psql.execute("insert into forge_jobs (job_type) values ('echo')")
    assert await psql.fetchval("select count(*) from forge_outbox") == 1

    await make_app().migrate()

    assert not await database.run(outbox.is_enabled())
    assert await psql.fetchval("select count(*) from forge_outbox") == 0
