"""Live updates when readers, tokens, connections and servers fail."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from forge import Forge
from forge.config_server import AuthConfig
from forge.http import live_conversation, live_events, live_stream
from forge.http.auth import Authenticator
from tests.faults.kit.process import until
from tests.flow.engine.conftest import MakeApp
from tests.http.conftest import MakeServerApp, MakeToken, Serve
from tests.http.live_client import Client, Served, client, events, watch_token

LONG = 300_000
ROUNDS = 60


@pytest.fixture
def api(app: Forge, make_server_app: MakeServerApp) -> Any:
    return make_server_app(app)


@pytest.fixture
async def address(api: Any, serve: Serve) -> str:
    return await serve(api)


@pytest.fixture
async def job_id(psql: Any) -> UUID:
    """A job of tenant 7 that waits."""
    made: UUID = await psql.fetchval(
        "insert into forge_jobs (job_type, tenant_id) values ('x', 7) returning id"
    )
    return made


@pytest.fixture
async def quick(address: str, token: MakeToken) -> AsyncIterator[Client]:
    """A client that reads all it is sent."""
    async with client(address, token("user")) as live:
        yield live


async def test_a_slow_reader_gets_the_newest_and_holds_up_nobody(
    address: str, quick: Client, job_id: UUID, token: MakeToken, psql: Any
) -> None:
    async with client(address, token("user"), max_queue=1) as slow:
        await slow.subscribe(job_id)
        await quick.subscribe(job_id)
        await changes(psql, job_id, quick)

        read = 0
        while (await slow.job())["progress_percent"] != ROUNDS:
            read += 1

    assert read < ROUNDS - 10


async def test_what_a_slow_reader_has_yet_to_read_does_not_grow(
    address: str,
    quick: Client,
    job_id: UUID,
    token: MakeToken,
    psql: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    held = conversations(monkeypatch)
    async with client(address, token("user"), max_queue=1) as slow:
        await slow.subscribe(job_id)
        await quick.subscribe(job_id)
        await changes(psql, job_id, quick)

        assert [len(one._unsent) for one in held] == [1]
        slow.socket.transport.abort()


@pytest.mark.parametrize("kind", ["socket", "stream"])
async def test_a_reader_that_takes_nothing_is_given_up(
    api: Any,
    address: str,
    quick: Client,
    job_id: UUID,
    token: MakeToken,
    psql: Any,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
) -> None:
    monkeypatch.setattr(live_conversation, "STALL", 0.3)
    monkeypatch.setattr(live_stream, "STALL", 0.3)
    other = await psql.fetchval("insert into forge_jobs (job_type) values ('y') returning id")
    stalled = client(address, token("user"), max_queue=1) if kind == "socket" else None
    if stalled is not None:
        live = await stalled.__aenter__()
        await live.subscribe(job_id)
    else:
        writer = await a_stream_that_nobody_reads(address, job_id, token("user"))
    await quick.subscribe(other)
    await until(lambda: len(api.state.live[1]._watched) == 2, 10, "both are watched")

    async def changed_again() -> bool:
        await change(psql, job_id, 1)
        return list(api.state.live[1]._watched) == [other]

    await until(changed_again, 20, "the stalled one is given up")
    await change(psql, other, 5)
    await quick.job(lambda job: job["progress_percent"] == 5)
    if stalled is not None:
        live.socket.transport.abort()
    else:
        writer.transport.abort()


async def test_a_client_that_vanishes_leaves_nothing_behind(
    api: Any, address: str, job_id: UUID, token: MakeToken
) -> None:
    async with client(address, token("user")) as live:
        await live.subscribe(job_id)
        await live.job()
        live.socket.transport.abort()

        await until(lambda: api.state.live[1]._watched == {}, 10, "nothing is watched")


async def test_hundreds_of_sockets_come_and_go_without_a_trace(
    api: Any, address: str, quick: Client, job_id: UUID, token: MakeToken
) -> None:
    await quick.subscribe(job_id)
    await quick.job()
    before = len(asyncio.all_tasks())

    async def come_and_go() -> None:
        async with client(address, token("user")) as live:
            await live.subscribe(job_id)
            await live.job()

    for _ in range(10):
        await asyncio.gather(*(come_and_go() for _ in range(30)))

    await until(lambda: len(asyncio.all_tasks()) <= before, 10, "no task is left")
    (watched,) = api.state.live[1]._watched.values()
    assert len(watched.tells) == 1


async def test_nothing_is_missed_over_a_restart_of_the_server(
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


async def test_a_server_that_stops_says_so_and_keeps_nobody_waiting(
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


async def test_a_row_changed_or_deleted_by_hand_is_told(
    quick: Client, job_id: UUID, psql: Any
) -> None:
    await quick.subscribe(job_id)
    await quick.job()

    await psql.execute("update forge_jobs set status = 'cancelled'")
    assert (await quick.job())["state"] == "cancelled"
    await psql.execute("delete from forge_jobs")
    told = await quick.next()

    assert (told["type"], told["code"], told["job_id"]) == ("error", "not_found", str(job_id))


async def test_a_job_that_changes_its_tenant_is_shown_no_more(
    address: str, job_id: UUID, token: MakeToken, psql: Any
) -> None:
    async with client(address, token("user", tenant=7)) as live:
        await live.subscribe(job_id)
        await live.job()
        await psql.execute("update forge_jobs set tenant_id = 8")

        assert (await live.next())["code"] == "not_found"


async def test_a_token_that_is_withdrawn_ends_the_conversation(
    api: Any, address: str, job_id: UUID
) -> None:
    token = "a token that will be withdrawn"
    known = {"name": "ann", "sha256": _sha256(token), "roles": ["user"]}
    settings = [AuthConfig.model_validate({"tokens": [known]})]
    api.state.authenticator = Authenticator(lambda: settings[0])
    async with client(address, {"Authorization": f"Bearer {token}"}) as live:
        await live.subscribe(job_id)
        await live.job()
        settings[0] = AuthConfig()

        assert await live.closed() == 4401


async def test_a_token_that_ends_ends_the_conversation(
    address: str, job_id: UUID, token: MakeToken
) -> None:
    async with client(address, token("user", lifetime=2)) as live:
        await live.subscribe(job_id)
        await live.job()

        assert await live.closed() == 4401


async def test_a_token_renewed_in_time_goes_on(
    address: str, job_id: UUID, token: MakeToken, psql: Any
) -> None:
    async with client(address, token("user", lifetime=2)) as short, client(address) as live:
        await live.say("auth", token=_bare(token("user", lifetime=2)))
        await live.subscribe(job_id)
        await live.job()
        await live.say("auth", token=_bare(token("user")))
        assert await short.closed() == 4401

        await change(psql, job_id, 1)
        assert (await live.job())["progress_percent"] == 1


async def test_a_watch_token_that_ends_is_told_and_can_be_renewed(
    address: str, job_id: UUID, psql: Any
) -> None:
    other = await psql.fetchval("insert into forge_jobs (job_type) values ('y') returning id")
    async with client(address) as live:
        await live.subscribe(other, watch_token=watch_token(other))
        await live.subscribe(job_id, watch_token=watch_token(job_id, lifetime=2))
        await live.job()
        await live.job()
        told = await live.next()
        assert (told["code"], told["job_id"]) == ("unauthenticated", str(job_id))

        await live.subscribe(job_id, watch_token=watch_token(job_id))
        assert (await live.job())["id"] == str(job_id)


async def test_the_last_watch_token_ends_the_conversation(address: str, job_id: UUID) -> None:
    async with client(address) as live:
        await live.subscribe(job_id, watch_token=watch_token(job_id, lifetime=2))
        await live.job()

        assert await live.closed() == 4401


async def test_without_a_database_the_stream_is_unavailable_and_the_socket_waits(
    make_app: MakeApp,
    make_server_app: MakeServerApp,
    serve: Serve,
    job_id: UUID,
    token: MakeToken,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(live_events, "PATIENCE", 0.3)
    api = make_server_app(make_app())
    url, api.state.forge.database_url = api.state.forge.database_url, "postgresql://127.0.0.1:1/x"
    address = await serve(api)
    async with events(address, job_id, token("user")) as stream:
        assert stream.answer.status_code == 503
        assert stream.answer.headers["retry-after"]

    async with client(address, token("user")) as live:
        await live.subscribe(job_id)
        (await (await api.state.forge.session()).database()).url = url  # it is back

        assert (await live.job())["id"] == str(job_id)


async def changes(psql: Any, job_id: UUID, quick: Client) -> None:
    """Change the job again and again, each time when the quick reader has seen the last."""
    await quick.job()
    for n in range(1, ROUNDS + 1):
        await change(psql, job_id, n)
        await quick.job(lambda job, n=n: job["progress_percent"] == n)


async def change(psql: Any, job_id: UUID, percent: int) -> None:
    # Random, for sockets compress what they send.
    await psql.execute(
        "update forge_jobs set progress_percent = $2, progress_message = $3 where id = $1",
        job_id,
        percent,
        secrets.token_urlsafe(LONG),
    )
    await psql.execute("select pg_notify('forge_changes', $1)", job_id.hex)


async def a_stream_that_nobody_reads(
    address: str, job_id: UUID, headers: dict[str, str]
) -> asyncio.StreamWriter:
    host, port = address.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port), limit=1024)
    lines = [f"GET /_api/jobs/{job_id}/events HTTP/1.1", f"Host: {host}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    writer.write("\r\n".join([*lines, "", ""]).encode())
    await writer.drain()
    assert (await reader.readline()).startswith(b"HTTP/1.1 200")
    return writer


def conversations(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return the list of all conversations that are begun from here on."""
    begun: list[Any] = []
    hold = live_conversation.Conversation.hold

    async def noted(self: Any) -> None:
        begun.append(self)
        await hold(self)

    monkeypatch.setattr(live_conversation.Conversation, "hold", noted)
    return begun


def _bare(headers: dict[str, str]) -> str:
    return headers["Authorization"].removeprefix("Bearer ")


def _sha256(token: str) -> str:
    from hashlib import sha256

    return sha256(token.encode()).hexdigest()
