"""The network modes of the proxy."""

from __future__ import annotations

import asyncio

import asyncpg
import pytest

from forge.store.embedded import Cluster
from tests.faults.kit.process import until
from tests.faults.kit.proxy import Mode, Proxy
from tests.faults.kit.server import running_server
from tests.faults.kit_tests.letters import INSERT, LOST, words


async def test_a_proxy_in_pass_mode_changes_nothing(
    proxy: Proxy, client: asyncpg.Connection
) -> None:
    assert await client.fetchval("select repeat('a', 1000000)") == "a" * 1_000_000

    assert proxy.network.connections == proxy.live == 1
    assert proxy.network.bytes_to_client > 1_000_000
    assert proxy.network.bytes_dropped == 0


async def test_a_unix_socket_can_be_the_upstream(server: Cluster) -> None:
    async with await Proxy.open(server.url()) as proxy:
        connection = await asyncpg.connect(proxy.url())

        assert await connection.fetchval("select 1") == 1
        await connection.close()


async def test_a_closed_connection_is_forgotten(proxy: Proxy, client: asyncpg.Connection) -> None:
    await client.close()

    await until(lambda: proxy.live == 0, 10, "the proxy has forgotten the client")


async def test_a_delay_holds_back_the_answer(proxy: Proxy, client: asyncpg.Connection) -> None:
    proxy.set_mode(to_client=Mode.delay(60_000))

    with pytest.raises(TimeoutError):
        await client.fetchval("select 1", timeout=0.2)

    assert proxy.network.bytes_dropped == 0


async def test_delayed_bytes_keep_their_order(proxy: Proxy, client: asyncpg.Connection) -> None:
    proxy.mode = Mode.delay(1, jitter=5)

    rows = await client.fetch("select n, repeat('a', 5000) from generate_series(1, 200) n")

    assert [row["n"] for row in rows] == list(range(1, 201))


async def test_a_silent_drop_leaves_the_socket_open(
    proxy: Proxy, client: asyncpg.Connection
) -> None:
    proxy.mode = Mode.DROP

    answer = asyncio.create_task(client.fetchval("select 1"))
    await until(lambda: proxy.network.bytes_dropped, 10, "the proxy has dropped the query")

    assert not answer.done()
    assert not client.is_closed()
    assert proxy.live == 1
    answer.cancel()


async def test_the_server_continues_when_only_answers_are_dropped(
    proxy: Proxy, client: asyncpg.Connection, direct: asyncpg.Connection
) -> None:
    await client.fetchval(INSERT, "first")
    proxy.set_mode(to_client=Mode.DROP)

    answer = asyncio.create_task(client.fetchval(INSERT, "second"))
    await until(lambda: proxy.network.bytes_dropped, 10, "the proxy has dropped the answer")

    assert await words(direct) == ["first", "second"]
    assert not answer.done()
    answer.cancel()


async def test_a_held_answer_arrives_when_it_is_released(
    proxy: Proxy, client: asyncpg.Connection, direct: asyncpg.Connection
) -> None:
    await client.fetchval(INSERT, "first")
    hold = proxy.hold(matching="insert into letters")

    answer = asyncio.create_task(client.fetchval(INSERT, "second"))
    await until(lambda: hold.happened, 10, "the statement has passed")
    await until(lambda: _has(direct, "second"), 10, "the server has carried it out")
    assert not answer.done()
    hold.release()

    assert await answer == 2
    assert await client.fetchval(INSERT, "third") == 3


async def test_a_connection_that_lost_bytes_stays_silent_when_the_network_recovers(
    proxy: Proxy, client: asyncpg.Connection, direct: asyncpg.Connection
) -> None:
    received: list[object] = []
    await client.add_listener("letters", lambda *arguments: received.append(arguments[-1]))
    proxy.mode = Mode.DROP
    await direct.execute("notify letters, 'lost'")
    lost = await until(lambda: proxy.network.bytes_dropped, 10, "the notification was dropped")

    proxy.mode = Mode.PASS
    await direct.execute("notify letters, 'later'")
    await until(lambda: proxy.network.bytes_dropped > lost, 10, "the later one was dropped too")
    other = await asyncpg.connect(proxy.url())

    assert await other.fetchval("select 2") == 2
    assert received == []
    await other.close()


async def test_an_idle_connection_survives_a_silent_network(
    proxy: Proxy, client: asyncpg.Connection
) -> None:
    proxy.mode = Mode.DROP
    proxy.mode = Mode.PASS

    assert await client.fetchval("select 1") == 1


async def test_only_the_listening_connection_can_be_silenced(
    proxy: Proxy, client: asyncpg.Connection, direct: asyncpg.Connection
) -> None:
    listener = await asyncpg.connect(proxy.url())
    received: list[object] = []
    await listener.add_listener("letters", lambda *arguments: received.append(arguments[-1]))
    await direct.execute("notify letters, 'before'")
    await until(lambda: received, 10, "the first notification")

    assert proxy.silence(matching="listen") == 1
    before = proxy.network.bytes_dropped
    await direct.execute("notify letters, 'after'")
    await until(lambda: proxy.network.bytes_dropped > before, 10, "the notification was dropped")

    assert received == ["before"]
    assert await client.fetchval("select 1") == 1
    listener.terminate()


async def test_a_reset_breaks_open_connections_and_refuses_new_ones(
    proxy: Proxy, client: asyncpg.Connection
) -> None:
    proxy.mode = Mode.RESET

    await until(client.is_closed, 10, "the client has seen the reset")
    with pytest.raises(LOST):
        await asyncpg.connect(proxy.url())
    assert proxy.network.refused == 1

    proxy.mode = Mode.PASS
    again = await asyncpg.connect(proxy.url())
    assert await again.fetchval("select 1") == 1
    await again.close()


async def test_a_reset_sends_rst_instead_of_fin(proxy: Proxy) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
    await until(lambda: proxy.live == 1, 10, "the proxy has accepted")

    proxy.reset()

    with pytest.raises(ConnectionResetError):
        await reader.read()
    writer.close()


async def test_a_failover_sends_new_connections_to_the_new_server(
    proxy: Proxy, server: Cluster
) -> None:
    with running_server() as standby:
        proxy.point_at(standby.url(tcp=True))

        connection = await asyncpg.connect(proxy.url())

        assert await connection.fetchval("show data_directory") == str(standby.data)
        await connection.close()


async def _has(direct: asyncpg.Connection, word: str) -> bool:
    return word in await words(direct)
