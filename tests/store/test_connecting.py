"""Connecting host by host: hosts that hang or do not suit do not block the others."""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from pathlib import Path
from urllib.parse import quote

import pytest

from forge.core.errors import ConfigError
from forge.store.connection.database import Database
from forge.store.connection.opening import socket_of
from forge.store.embedded import Cluster
from tests.faults.kit.process import until
from tests.faults.kit.proxy import Mode, Proxy
from tests.faults.kit.server import running_server
from tests.faults.kit.standby import standby_of


@pytest.fixture(scope="module")
def primary() -> Iterator[Cluster]:
    with running_server(fsync="off") as server:
        yield server


@pytest.fixture
def hung() -> Iterator[socket.socket]:
    """Takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0), backlog=50) as listener:
        listener.setblocking(False)
        yield listener


def place_of_hung(listener: socket.socket) -> str:
    return f"127.0.0.1:{listener.getsockname()[1]}"


def callers(listener: socket.socket) -> int:
    """How many have connected since the last look."""
    count = 0
    with suppress(BlockingIOError):
        while True:
            listener.accept()[0].close()
            count += 1
    return count


def url_of(*places: str, query: str = "", server: Cluster) -> str:
    login = server.url(tcp=True).removeprefix("postgresql://").rpartition("@")[0]
    return f"postgresql://{login}@{','.join(places)}/forge?{query}"


def place_of(server: Cluster) -> str:
    return server.url(tcp=True).rpartition("@")[2].partition("/")[0]


@asynccontextmanager
async def opened(url: str, seconds: float = 10) -> AsyncIterator[Database]:
    database = Database(url, connect_timeout=timedelta(seconds=seconds))
    yield database
    await database.close()


async def test_a_host_that_hangs_does_not_hide_the_next(
    hung: socket.socket, primary: Cluster
) -> None:
    """Fault 53: it accepts and never answers; each host has a timeout of its own."""
    query = "connect_timeout=2&target_session_attrs=read-write"
    url = url_of(place_of_hung(hung), place_of(primary), query=query, server=primary)

    async with opened(url, seconds=60) as database, asyncio.timeout(20):
        async with database.acquire() as connection:
            assert await connection.fetchval("select 1") == 1
        pool = await database.users()
        assert await pool.fetchval("select 1") == 1


async def test_a_host_that_timed_out_is_tried_last_for_a_while(
    hung: socket.socket, primary: Cluster
) -> None:
    url = url_of(place_of_hung(hung), place_of(primary), query="connect_timeout=2", server=primary)

    async with opened(url) as database:
        await (await database.connect()).close()
        assert callers(hung) > 0

        await (await database.connect()).close()

        assert callers(hung) == 0


async def test_a_caller_that_waits_no_longer_finds_another_host_next_time(
    hung: socket.socket, primary: Cluster
) -> None:
    url = url_of(place_of_hung(hung), place_of(primary), query="connect_timeout=60", server=primary)

    async with opened(url) as database:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(database.connect(), 2.2)

        async with asyncio.timeout(20):
            await (await database.connect()).close()


async def test_a_read_only_server_is_passed_over(primary: Cluster) -> None:
    with running_server(fsync="off", default_transaction_read_only="on") as other:
        both = "postgresql:///forge?user=forge&host={}&port={}".format(
            ",".join(
                quote(str(Path(one.url().split("host=")[1].split("&")[0])))
                for one in (other, primary)
            ),
            ",".join(one.url().rpartition("=")[2] for one in (other, primary)),
        )
        async with opened(f"{both}&target_session_attrs=read-write") as database:
            connection = await database.connect()
            assert await connection.fetchval("show data_directory") == str(primary.data)
            await connection.close()


async def test_standbys_are_chosen_by_target_session_attrs(primary: Cluster) -> None:
    with standby_of(primary) as standby:
        for wanted, found in [
            ("any", primary),
            ("primary", primary),
            ("read-write", primary),
            ("standby", standby),
            ("read-only", standby),
            ("prefer-standby", standby),
        ]:
            query = f"target_session_attrs={wanted}"
            places = place_of(primary), place_of(standby)
            async with opened(url_of(*places, query=query, server=primary)) as database:
                connection = await database.connect()
                assert await connection.fetchval("show data_directory") == str(found.data), wanted
                await connection.close()


async def test_prefer_standby_takes_a_primary_where_there_is_no_standby(primary: Cluster) -> None:
    query = "target_session_attrs=prefer-standby"
    async with opened(url_of(place_of(primary), query=query, server=primary)) as database:
        await (await database.connect()).close()


async def test_settings_of_the_url_reach_the_session(primary: Cluster) -> None:
    query = "application_name=shop&options=-c%20work_mem%3D7MB%20-c%20geqo%3Doff"
    async with opened(url_of(place_of(primary), query=query, server=primary)) as database:
        connection = await database.connect()
        shown = [await connection.fetchval(f"show {name}") for name in ("work_mem", "geqo")]
        assert [*shown, await connection.fetchval("show application_name")] == [
            "7MB",
            "off",
            "shop",
        ]
        await connection.close()


async def test_the_kernel_watches_over_connections(primary: Cluster) -> None:
    query = "keepalives_idle=11&tcp_user_timeout=12000"
    async with opened(url_of(place_of(primary), query=query, server=primary)) as database:
        connection = await database.connect()
        found = socket_of(connection)
        assert found is not None
        assert found.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        assert found.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 11
        assert found.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 12_000
        await connection.close()


async def test_a_service_is_read_from_its_file(
    primary: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host, _, port = place_of(primary).partition(":")
    file = tmp_path / "services"
    file.write_text(
        f"[shop]\nhost={host}\nport={port}\ndbname=forge\napplication_name=by service\n"
    )
    monkeypatch.setenv("PGSERVICEFILE", str(file))
    login = url_of(server=primary).partition("@")[0]

    async with opened(f"{login}@/?service=shop") as database:
        connection = await database.connect()
        assert await connection.fetchval("show application_name") == "by service"
        await connection.close()
    async with opened(f"{login}@/?service=shoe") as database:
        with pytest.raises(ConfigError, match="service 'shoe' is not in"):
            await database.connect()


async def test_a_certificate_that_is_not_there_is_named(primary: Cluster) -> None:
    query = "sslmode=verify-full&sslrootcert=/nowhere/root.crt"
    async with opened(url_of(place_of(primary), query=query, server=primary)) as database:
        with pytest.raises(ConfigError, match=r"sslrootcert .*/nowhere/root\.crt"):
            await database.connect()


async def test_a_server_that_answers_again_is_found_though_an_earlier_try_hangs(
    primary: Cluster,
) -> None:
    """A try whose first bytes were lost would hang for the whole timeout."""
    async with (
        await Proxy.open(primary.url(tcp=True)) as proxy,
        opened(proxy.url(), 60) as database,
    ):
        proxy.mode = Mode.DROP
        connecting = asyncio.create_task(database.connect())
        await until(lambda: proxy.network.bytes_dropped > 0, 30, "the first bytes are lost")
        proxy.mode = Mode.PASS

        async with asyncio.timeout(20):
            await (await connecting).close()


def test_an_attempt_ends_quietly_when_the_loop_is_closed_around_it(
    hung: socket.socket, primary: Cluster
) -> None:
    loop = asyncio.new_event_loop()
    database = Database(url_of(place_of_hung(hung), server=primary))
    attempt = database.connect()
    task = loop.create_task(attempt)
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()

    attempt.close()

    assert not task.done()
