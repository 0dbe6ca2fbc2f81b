"""Slow, stalled and vanished readers, and hundreds of sockets."""

import asyncio
import socket
from typing import Any
from uuid import UUID

import pytest

from forge.http.live import event_stream, follower_socket
from tests.faults.kit.process import until
from tests.http.conftest import MakeToken
from tests.http.live.conftest import change
from tests.http.live_client import Client, client

ROUNDS = 30


async def test_slow_reader_gets_the_newest_and_delays_no_one(
    address: str, quick: Client, job_id: UUID, token: MakeToken, psql: Any
) -> None:
    async with client(address, token("user"), max_queue=1, sock=narrow(address)) as slow:
        await slow.subscribe(job_id)
        await quick.subscribe(job_id)
        await changes(psql, job_id, quick)

        read = 0
        while (await slow.job())["progress_percent"] != ROUNDS:
            read += 1

    assert read < ROUNDS - 10


async def test_unsent_state_of_a_slow_reader_is_bounded(
    address: str,
    quick: Client,
    job_id: UUID,
    token: MakeToken,
    psql: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    held = opened_sockets(monkeypatch)
    async with client(address, token("user"), max_queue=1, sock=narrow(address)) as slow:
        await slow.subscribe(job_id)
        await quick.subscribe(job_id)
        await changes(psql, job_id, quick)

        assert [len(one._unsent) for one in held] == [1]
        slow.socket.transport.abort()


@pytest.mark.parametrize("kind", ["socket", "stream"])
async def test_stalled_reader_is_disconnected(
    api: Any,
    address: str,
    quick: Client,
    job_id: UUID,
    token: MakeToken,
    psql: Any,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
) -> None:
    monkeypatch.setattr(follower_socket, "SEND_TIMEOUT", 0.3)
    monkeypatch.setattr(event_stream, "SEND_TIMEOUT", 0.3)
    other = await psql.fetchval("insert into forge_jobs (job_type) values ('y') returning id")
    stalled = client(address, token("user"), max_queue=1) if kind == "socket" else None
    if stalled is not None:
        live = await stalled.__aenter__()
        await live.subscribe(job_id)
    else:
        writer = await a_stream_that_nobody_reads(address, job_id, token("user"))
    await quick.subscribe(other)
    await until(lambda: len(api.state.live_hub.hub._watched) == 2, 10, "both are watched")

    async def changed_again() -> bool:
        await change(psql, job_id, 1)
        return list(api.state.live_hub.hub._watched) == [other]

    await until(changed_again, 20, "the stalled one is given up")
    await change(psql, other, 5)
    await quick.job(lambda job: job["progress_percent"] == 5)
    if stalled is not None:
        live.socket.transport.abort()
    else:
        writer.transport.abort()


async def test_vanished_client_frees_all_state(
    api: Any, address: str, job_id: UUID, token: MakeToken
) -> None:
    async with client(address, token("user")) as live:
        await live.subscribe(job_id)
        await live.job()
        live.socket.transport.abort()

        await until(lambda: api.state.live_hub.hub._watched == {}, 10, "nothing is watched")


async def test_hundreds_of_sockets_leak_nothing(
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
    (watched,) = api.state.live_hub.hub._watched.values()
    assert len(watched.callbacks) == 1


def narrow(address: str) -> socket.socket:
    """Open a connection with a tiny receive buffer."""
    host, port = address.removeprefix("http://").split(":")
    opened = socket.socket()
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    opened.connect((host, int(port)))
    opened.setblocking(False)
    return opened


async def changes(psql: Any, job_id: UUID, quick: Client) -> None:
    """Change the job again and again, each time when the quick reader has seen the last."""
    await quick.job()
    for n in range(1, ROUNDS + 1):
        await change(psql, job_id, n)
        await quick.job(lambda job, n=n: job["progress_percent"] == n)


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


def opened_sockets(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return a list of all sockets that are opened from now on."""
    opened: list[Any] = []
    serve = follower_socket.FollowerSocket.serve

    async def record(self: Any) -> None:
        opened.append(self)
        await serve(self)

    monkeypatch.setattr(follower_socket.FollowerSocket, "serve", record)
    return opened
