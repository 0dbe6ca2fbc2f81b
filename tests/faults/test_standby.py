"""A database that is a standby: Forge reports it as read-only, and starts after the promotion."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import httpx
import pytest

from forge import Config, DatabaseUnavailable, Forge, JobContext, Worker
from forge.core.events import Event, WorkerNotice
from forge.http.app import create_app
from forge.store.connection.database import Database
from forge.store.embedded import Cluster
from forge.store.migrate import migrate
from tests.cli.command import Project
from tests.faults.kit.process import until
from tests.faults.kit.server import running_server
from tests.faults.kit.standby import promote, standby_of


@pytest.fixture
def primary() -> Iterator[Cluster]:
    with running_server(fsync="off") as server:
        yield server


async def double(ctx: JobContext, input: int) -> int:
    return 2 * input


@pytest.mark.parametrize("query", ["", "&target_session_attrs=read-write"])
async def test_a_worker_logs_that_it_waits_for_the_promotion(primary: Cluster, query: str) -> None:
    database = Database(primary.url())
    await migrate(database)
    await database.close()
    with standby_of(primary) as standby:
        app = Forge(Config(worker={"metrics_port": "off"}), database_url=standby.url() + query)
        job = app.job(double)
        notices: list[str] = []

        def listen(event: Event) -> None:
            if isinstance(event, WorkerNotice):
                notices.append(str(event.detail.get("error")))

        app.events.listeners.append(listen)
        worker = Worker(app)
        working = asyncio.create_task(worker.run())
        await until(lambda: notices, 30, "the worker says what it waits for")
        with pytest.raises(DatabaseUnavailable, match=r"read-only.*[Pp]romote"):
            await app.dispatch(job, 21)
        assert "read-only" in notices[0]

        await promote(standby)

        await until(worker.started.is_set, 30, "the worker has begun")
        assert await (await app.dispatch(job, 21)).result(timeout=30) == 42
        worker.drain()
        await working
        await app.close()


async def test_a_server_is_not_ready_and_commands_fail_until_the_promotion(
    primary: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    database = Database(primary.url())
    await migrate(database)
    await database.close()
    with standby_of(primary) as standby:
        app = Forge(database_url=standby.url())
        app.job(double)
        project = Project(standby.url())
        api = httpx.ASGITransport(create_app(app))
        async with httpx.AsyncClient(transport=api, base_url="http://test") as client:
            unready = await client.get("/readyz")
            listed = await asyncio.to_thread(project.forge, "jobs", "list")
            moved = await asyncio.to_thread(project.forge, "migrate", "--roles")
            await promote(standby)
            ready = await client.get("/readyz")
        await app.close()

    assert (unready.status_code, ready.status_code) == (503, 200)
    assert "read-only" in caplog.text
    assert listed.returncode == 0, listed.stderr
    assert (moved.returncode, "read-only" in moved.stderr) == (1, True), moved.stderr
