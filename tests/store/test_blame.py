"""Errors of a lost database are recognized, from the real errors of each driver."""

import asyncio
import os
import signal
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import psycopg
import pytest
import sqlalchemy
from sqlalchemy.ext.asyncio import create_async_engine

from forge import Config, DatabaseUnavailable, Forge, Transient
from forge.definitions.error_classification import Classifier
from forge.store.connection.database import Database
from forge.store.embedded import Cluster
from forge.store.statement import Statement, nothing
from tests.faults.kit.process import until
from tests.faults.kit.proxy import Proxy
from tests.faults.kit.server import running_server

Errors = dict[str, BaseException]
Act = Callable[[], Awaitable[Any]]
DRIVERS = (
    "asyncpg",
    "a pool of asyncpg",
    "psycopg",
    "async psycopg",
    "SQLAlchemy on psycopg",
    "SQLAlchemy on asyncpg",
)
HANG = "select pg_sleep(600)"
HANGING = "select count(*) from pg_stat_activity where query like '%pg_sleep(600)%' and pid <> $1"


@pytest.fixture(scope="module", params=["fast", "immediate"])
def met(request: pytest.FixtureRequest) -> Errors:
    """What each driver raised when its server was stopped like this."""
    with running_server() as server:
        return asyncio.run(_gather(server, request.param))


@pytest.fixture(scope="module")
def lasting() -> Iterator[Cluster]:
    with running_server() as server:
        yield server


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("when", ["in a statement", "being shut down", "connecting"])
def test_a_server_that_stops_is_lost(driver: str, when: str, met: Errors) -> None:
    assert _is_loss(met[f"{driver} {when}"]), repr(met[f"{driver} {when}"])


@pytest.mark.parametrize("driver", ["ctx.db", "psycopg", "async psycopg", "SQLAlchemy on asyncpg"])
def test_a_server_that_stopped_between_two_statements_is_lost(driver: str, met: Errors) -> None:
    assert _is_loss(met[f"{driver} between statements"])


def test_forge_s_own_words_for_it_are_a_loss(met: Errors) -> None:
    error = met["forge"]

    assert isinstance(error, DatabaseUnavailable)
    assert _is_loss(error)


def test_an_error_caused_by_a_loss_is_a_loss_unless_classified(met: Errors) -> None:
    loss = met["psycopg in a statement"]

    assert _is_loss(_raised(ValueError("cannot save"), loss))
    assert not _is_loss(_raised(Transient("come back"), loss))


def test_a_group_is_a_loss_if_all_in_it_are(met: Errors) -> None:
    losses = [met["asyncpg connecting"], met["psycopg connecting"]]

    assert _is_loss(BaseExceptionGroup("both", losses))
    assert not _is_loss(BaseExceptionGroup("one", [*losses, ValueError("its own")]))


@pytest.mark.parametrize("sql", ["select 1 / 0", "selekt 1", HANG], ids=["wrong", "typo", "slow"])
@pytest.mark.parametrize("driver", DRIVERS)
async def test_a_statement_that_the_server_refused_is_no_loss(
    driver: str, sql: str, lasting: Cluster
) -> None:
    options = "options=-c%20statement_timeout%3D50"
    error = await _error(_asking(lasting.url() + "&" + options, sql)[driver])

    assert not _is_loss(error), repr(error)


@pytest.mark.parametrize("driver", DRIVERS)
async def test_a_rejected_login_is_no_loss(driver: str, lasting: Cluster) -> None:
    error = await _error(_asking(lasting.url("not_there"), "select 1")[driver])

    assert "does not exist" in str(error)
    assert not _is_loss(error)


async def test_a_connection_that_the_handler_closed_itself_is_no_loss(lasting: Cluster) -> None:
    closed = await asyncpg.connect(lasting.url())
    await closed.close()
    with psycopg.connect(lasting.url()) as ended:
        pass
    database = Database(lasting.url())
    pool = await database.users()
    released = await pool.acquire()
    await pool.release(released)

    assert not _is_loss(await _error(lambda: released.execute("select 1")))
    await database.close()
    assert not _is_loss(await _error(lambda: closed.execute("select 1")))
    assert not _is_loss(await _error(lambda: asyncio.to_thread(ended.execute, "select 1")))


async def test_another_service_that_refuses_is_no_loss() -> None:
    with socket.socket() as nobody_listens:
        nobody_listens.bind(("127.0.0.1", 0))
        address = nobody_listens.getsockname()

        async def connect() -> None:
            socket.create_connection(address)

        errors = [
            await _error(connect),
            await _error(lambda: asyncio.open_connection(*address)),
        ]

    assert [type(error) for error in errors] == [ConnectionRefusedError] * 2
    assert not any(map(_is_loss, errors))


async def test_a_server_that_does_not_answer_is_lost(lasting: Cluster) -> None:
    database = Database(lasting.url())
    link = database.link(timeout=0.05)
    hanging: Statement[None] = Statement(HANG, (), nothing)

    error = await _error(lambda: link.run(hanging))

    await link.close()
    assert isinstance(error, DatabaseUnavailable)
    assert _is_loss(error)


async def test_a_connection_after_the_servers_last_message_is_lost(
    lasting: Cluster,
) -> None:
    async with await Proxy.open(lasting.url()) as proxy:
        database = Database(proxy.url())
        held = await (await database.users()).acquire()
        proxy.network.loses_fin = True
        await _terminate(lasting.url(), held.get_server_pid(), proxy)

        error = await _error(lambda: _in_transaction(held))

        held.terminate()
        await database.close()
    assert isinstance(error.__context__ or error, asyncpg.InternalClientError)
    assert _is_loss(error)


async def test_a_connection_that_two_tasks_use_at_once_is_no_loss(lasting: Cluster) -> None:
    connection = await asyncpg.connect(lasting.url())
    asking = asyncio.create_task(connection.execute("select pg_sleep(0.2)"))
    await asyncio.sleep(0)

    error = await _error(lambda: connection.execute("select 1"))

    await asking
    await connection.close()
    assert "another operation is in progress" in str(error)
    assert not _is_loss(error)


@pytest.mark.parametrize(
    ("setting", "is_lost"),
    [("idle_session_timeout", True), ("idle_in_transaction_session_timeout", False)],
)
async def test_a_session_that_idled_for_too_long(
    setting: str, is_lost: bool, lasting: Cluster
) -> None:
    url = f"{lasting.url()}&options=-c%20{setting}%3D50"
    watcher = await asyncpg.connect(lasting.url())
    with psycopg.connect(url, autocommit=is_lost) as idle:
        idle.execute("select 1")
        await until(lambda: _has_ended(watcher, idle.info.backend_pid), 30, "the session has ended")

        error = await _error(lambda: asyncio.to_thread(idle.execute, "select 1"))

    await watcher.close()
    assert _is_loss(error) == is_lost, repr(error)


async def test_a_server_without_room_for_another_connection_is_a_loss(lasting: Cluster) -> None:
    async with _without_room(lasting) as url:
        errors = {name: await _error(act) for name, act in _asking(url, "select 1").items()}

    assert {name: _is_loss(error) for name, error in errors.items()} == dict.fromkeys(DRIVERS, True)


async def test_a_pool_without_room_is_no_loss(lasting: Cluster) -> None:
    config = Config(database={"pool_size": 1, "connect_timeout": "50ms"})
    async with Forge(config, database_url=lasting.url()) as app:
        database = await (await app.session()).database()
        async with database.acquire():
            error = await _error(lambda: app.get("01890000-0000-7000-8000-000000000000"))

    assert isinstance(error, DatabaseUnavailable)
    assert not _is_loss(error)


async def _gather(server: Cluster, how: str) -> Errors:
    url = server.url()
    idle_sync = psycopg.connect(url)
    idle = await psycopg.AsyncConnection.connect(url)
    engine = create_async_engine(_with("asyncpg", url))
    idle_engine = await engine.connect()
    database = Database(url)
    held = await (await database.users()).acquire()
    await held.execute("select 1")
    await idle_engine.execute(sqlalchemy.text("select 1"))
    asking = {name: asyncio.create_task(_error(act)) for name, act in _asking(url, HANG).items()}
    watcher = await asyncpg.connect(url)
    await until(lambda: _all_hang(watcher), 30, "every driver is in a statement")

    met: Errors = {}
    assert server.pid is not None
    os.kill(server.pid, signal.SIGTERM)  # new connections are rejected, open ones stay
    await until(lambda: _is_shut(url), 30, "the server rejects connections")
    await _meet(met, "being shut down", _asking(url, "select 1"))
    await asyncio.to_thread(server.stop, how)
    met |= {f"{name} in a statement": await error for name, error in asking.items()}
    await _meet(met, "connecting", _asking(url, "select 1"))
    met["ctx.db between statements"] = await _error(lambda: _in_transaction(held))
    await database.close()
    met["psycopg between statements"] = await _error(
        lambda: asyncio.to_thread(idle_sync.execute, "select 1")
    )
    met["async psycopg between statements"] = await _error(lambda: idle.execute("select 1"))
    met["SQLAlchemy on asyncpg between statements"] = await _error(
        lambda: idle_engine.execute(sqlalchemy.text("select 1"))
    )
    async with Forge(Config(), database_url=url) as app:
        met["forge"] = await _error(lambda: app.get("01890000-0000-7000-8000-000000000000"))
    return met


def _asking(url: str, sql: str) -> dict[str, Act]:
    """Send one statement on a new connection, by each driver."""

    async def by_asyncpg() -> None:
        await (await asyncpg.connect(url)).execute(sql)

    async def by_pool() -> None:
        async with asyncpg.create_pool(url, min_size=0) as pool:
            await pool.execute(sql)

    async def by_async_psycopg() -> None:
        async with await psycopg.AsyncConnection.connect(url) as conn:
            await conn.execute(sql)

    def by_psycopg() -> None:
        with psycopg.connect(url) as conn:
            conn.execute(sql)

    def by_engine() -> None:
        with sqlalchemy.create_engine(_with("psycopg", url)).connect() as conn:
            conn.execute(sqlalchemy.text(sql))

    async def by_async_engine() -> None:
        async with create_async_engine(_with("asyncpg", url)).connect() as conn:
            await conn.execute(sqlalchemy.text(sql))

    return {
        "asyncpg": by_asyncpg,
        "a pool of asyncpg": by_pool,
        "psycopg": lambda: asyncio.to_thread(by_psycopg),
        "async psycopg": by_async_psycopg,
        "SQLAlchemy on psycopg": lambda: asyncio.to_thread(by_engine),
        "SQLAlchemy on asyncpg": by_async_engine,
    }


@asynccontextmanager
async def _without_room(server: Cluster) -> AsyncIterator[str]:
    """A login that may have no connection at all."""
    admin = await asyncpg.connect(server.url())
    await admin.execute("create role nobody_fits login connection limit 0")
    yield server.url().replace("forge@", "nobody_fits@")
    await admin.execute("drop role nobody_fits")
    await admin.close()


async def _terminate(url: str, pid: int, proxy: Proxy) -> None:
    admin, before = await asyncpg.connect(url), proxy.network.bytes_to_client
    await admin.execute("select pg_terminate_backend($1, 5000)", pid)
    await admin.close()
    await until(lambda: proxy.network.bytes_to_client > before, 30, "its last word came")


async def _has_ended(watcher: "asyncpg.Connection[Any]", pid: int) -> bool:
    return not await watcher.fetch("select from pg_stat_activity where pid = $1", pid)


async def _in_transaction(conn: Any) -> None:
    async with conn.transaction():
        await conn.execute("select 1")


async def _meet(met: Errors, when: str, acts: dict[str, Act]) -> None:
    for name, act in acts.items():
        met[f"{name} {when}"] = await _error(act)


async def _error(act: Act) -> BaseException:
    try:
        await act()
    except Exception as error:
        return error
    raise AssertionError("it raised nothing")


async def _all_hang(watcher: "asyncpg.Connection[Any]") -> bool:
    return await watcher.fetchval(HANGING, watcher.get_server_pid()) == len(DRIVERS)


async def _is_shut(url: str) -> bool:
    try:
        await (await asyncpg.connect(url)).close()
    except asyncpg.CannotConnectNowError:
        return True
    return False


def _with(driver: str, url: str) -> str:
    return url.replace("postgresql://", f"postgresql+{driver}://")


def _raised(error: Exception, cause: BaseException) -> BaseException:
    try:
        try:
            raise cause
        except BaseException:
            raise error  # noqa: B904 - as a handler does that does not think of it
    except Exception as raised:
        return raised


def _is_loss(error: BaseException) -> bool:
    return Classifier().failure(error).is_loss
