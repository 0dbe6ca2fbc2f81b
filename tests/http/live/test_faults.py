"""Live updates when connections and servers fail."""

import asyncio
from typing import Any
from uuid import UUID

import httpx
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from forge import Forge
from forge.http.live import access
from forge.store.connection.opening import Connector
from tests.apps import MakeApp
from tests.faults.kit.process import until
from tests.http.conftest import MakeServerApp, MakeToken, Serve
from tests.http.job_client import code
from tests.http.live.conftest import change
from tests.http.live_client import Client, Served, client, events


async def test_no_change_is_missed_over_a_server_restart(
    app: Forge, make_server_app: MakeServerApp, job_id: UUID, token: MakeToken, psql: Any
) -> None:
    first = Served(make_server_app(app))
    address = await first.started()
    seen: list[int] = []

    async def follow() -> None:
        url = address.replace("http:", "ws:") + "/_api/ws"
        async for socket in connect(url, additional_headers=token("user")):
            live = Client(socket)
            try:
                await live.subscribe(job_id)
                while True:
                    seen.append((await live.job())["progress_percent"])
                    if seen[-1] == 3:
                        return
            except ConnectionClosed:
                continue

    following = asyncio.create_task(follow())
    await until(lambda: seen == [0], 10, "the client sees the present")
    await first.stop()
    await change(psql, job_id, 2)
    second = Served(make_server_app(app), first.port)
    await second.started()
    await until(lambda: seen == [0, 2], 20, "the client sees what happened meanwhile")
    await change(psql, job_id, 3)
    await asyncio.wait_for(following, 20)
    await second.stop()

    assert seen == [0, 2, 3]


async def test_shutdown_closes_sockets_promptly(
    app: Forge, make_server_app: MakeServerApp, job_id: UUID, token: MakeToken
) -> None:
    served = Served(make_server_app(app))
    address = await served.started()
    caller = token("user")
    async with client(address, caller) as live, events(address, job_id, caller) as stream:
        await live.subscribe(job_id)
        await live.job()
        await stream.job()
        stopping = asyncio.create_task(served.stop())

        assert await stream.next() is None
        assert await live.closed() == 1012
    await stopping


@pytest.mark.parametrize("which", ["the listening one", "all"])
async def test_nothing_is_missed_when_connections_are_lost(
    quick: Client, job_id: UUID, psql: Any, which: str
) -> None:
    await quick.subscribe(job_id)
    await quick.job()
    listening = "and query ilike 'listen%'" if which == "the listening one" else ""
    ended = await psql.fetchval(
        "select count(pg_terminate_backend(pid)) from pg_stat_activity where pid <> "
        f"pg_backend_pid() and datname = current_database() {listening}"
    )
    assert ended >= 1
    for percent in (10, 20):
        await change(psql, job_id, percent)
        await quick.job(lambda job, percent=percent: job["progress_percent"] == percent)


async def test_manual_update_or_delete_is_sent(quick: Client, job_id: UUID, psql: Any) -> None:
    await quick.subscribe(job_id)
    await quick.job()

    await psql.execute("update forge_jobs set status = 'cancelled'")
    assert (await quick.job())["state"] == "cancelled"
    await psql.execute("delete from forge_jobs")
    message = await quick.next()

    assert (message["type"], message["code"], message["job_id"]) == (
        "error",
        "not_found",
        str(job_id),
    )


async def test_job_that_changes_its_tenant_is_no_longer_shown(
    address: str, job_id: UUID, token: MakeToken, psql: Any
) -> None:
    async with client(address, token("user", tenant=7)) as live:
        await live.subscribe(job_id)
        await live.job()
        await psql.execute("update forge_jobs set tenant_id = 8")

        assert (await live.next())["code"] == "not_found"


async def test_without_a_database_requests_are_refused_and_the_socket_waits(
    make_app: MakeApp,
    make_server_app: MakeServerApp,
    serve: Serve,
    job_id: UUID,
    token: MakeToken,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(access, "FIRST_STATE_TIMEOUT", 0.3)
    api = make_server_app(make_app())
    url, api.state.forge.database_url = api.state.forge.database_url, "postgresql://127.0.0.1:1/x"
    address = await serve(api)
    async with events(address, job_id, token("user")) as stream:
        assert stream.answer.status_code == 503
        assert stream.answer.headers["retry-after"]
    async with httpx.AsyncClient(base_url=address) as http:
        answer = await http.get(f"/_api/jobs/{job_id}/live", headers=token("user"))
        assert code(answer) == (503, "unavailable")
        assert answer.headers["retry-after"]

    async with client(address, token("user")) as live:
        await live.subscribe(job_id)
        database = await (await api.state.forge.session()).database()
        database._connector = Connector(url, database.connect_timeout)  # it is back

        assert (await live.job())["id"] == str(job_id)
