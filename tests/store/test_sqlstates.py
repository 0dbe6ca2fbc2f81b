"""Every SQLSTATE means the same to links, to handlers with any driver, and to acks."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

import asyncpg
import psycopg
import pytest
import sqlalchemy
from asyncpg import exceptions
from sqlalchemy.ext.asyncio import create_async_engine

from forge import DatabaseUnavailable, SchemaMissing, StatementRefused
from forge.core.outcome import Failure
from forge.core.sqlstate import JUDGEMENTS, Blame, Remedy, Verdict, judge
from forge.definitions.error_classification import Classifier
from forge.store.connection.database import Database
from forge.store.statement import Statement, nothing
from tests.django_setup import set_up_django

Throw = Callable[[str], Awaitable[Any]]
THROW = """
    create function throw(state text) returns void language plpgsql
    as $$ begin raise exception 'thrown' using errcode = state; end $$
"""
STATES = sorted(
    {
        # A code that a later version of PostgreSQL may bring.
        *(f"{state[:2]}Z99" for state in JUDGEMENTS),
        *(
            kind.sqlstate
            for kind in vars(exceptions).values()
            if isinstance(kind, type)
            and issubclass(kind, asyncpg.PostgresError)
            and kind.sqlstate is not None
        ),
    }
)
PLATFORMS = [
    "08006",
    "53000",
    "53100",
    "53200",
    "53300",
    "57P01",
    "57P02",
    "57P03",
    "57P04",
    "57P05",
    "58000",
    "58030",
]
HANDLERS = [
    "22012",
    "23505",
    "25P03",
    "25P04",
    "28P01",
    "40002",
    "42501",
    "42601",
    "53400",
    "54000",
    "58P01",
    "XX000",
    "XX001",
]


@pytest.fixture
async def throwing(psql: "asyncpg.Connection[Any]") -> None:
    await psql.execute(THROW)


def test_every_class_of_postgresql_is_tried() -> None:
    assert len(STATES) > 250
    assert {state[:2] for state in JUDGEMENTS} < {state[:2] for state in STATES}


@pytest.mark.parametrize("state", PLATFORMS)
def test_a_fault_of_the_platform_costs_no_attempt(state: str) -> None:
    assert judge(state).blame is Blame.PLATFORM
    assert judge(state).remedy in (Remedy.RETRY, Remedy.RECONNECT)


@pytest.mark.parametrize("state", HANDLERS)
def test_a_fault_of_the_handler_costs_an_attempt(state: str) -> None:
    assert judge(state).blame is Blame.HANDLER


async def test_links_follow_the_sqlstate_table(database: Database, throwing: None) -> None:
    link = database.link()
    wrong = {}
    for state in STATES:
        before = await link.run(_backend())
        with pytest.raises((DatabaseUnavailable, SchemaMissing, StatementRefused)) as refusal:
            await link.run(Statement("select throw($1)", (state,), nothing))
        remedy = _remedy(refusal.value, is_same=await link.run(_backend()) == before)
        if remedy is not judge(state).remedy:
            wrong[state] = remedy
    await link.close()

    assert wrong == {}


@pytest.mark.parametrize(
    "driver",
    ["asyncpg", "psycopg", "SQLAlchemy on asyncpg", "SQLAlchemy on psycopg", "Django"],
)
async def test_attempts_follow_the_sqlstate_table(
    driver: str, database_url: str, throwing: None
) -> None:
    throw = await DRIVERS[driver](database_url)
    wrong = {}
    for state in STATES:
        with pytest.raises(Exception, match="thrown") as raised:
            await throw(state)
        paid = _paid(Classifier().failure(raised.value))
        if paid != _expected(judge(state)):
            wrong[state] = paid

    assert wrong == {}


def _backend() -> Statement[int]:
    return Statement("select pg_backend_pid() as pid", (), lambda found: int(found[0]["pid"]))


def _remedy(error: BaseException, *, is_same: bool) -> Remedy:
    match error:
        case DatabaseUnavailable():
            return Remedy.RETRY if is_same else Remedy.RECONNECT
        case SchemaMissing():
            return Remedy.MIGRATE
        case StatementRefused(blames_value=True):
            return Remedy.REFUSE_VALUE
    return Remedy.REFUSE


def _paid(failure: Failure) -> tuple[bool, bool, str | None]:
    return failure.is_loss, failure.is_loss_if_read_only, failure.error_class


def _expected(verdict: Verdict) -> tuple[bool, bool, str | None]:
    match verdict.blame:
        case Blame.PLATFORM:
            return True, False, "transient"
        case Blame.PLATFORM_IF_READ_ONLY:
            return False, True, None
        case Blame.TRANSIENT:
            return False, False, "transient"
    return False, False, None


async def _by_asyncpg(url: str) -> Throw:
    connection = await asyncpg.connect(url)
    return lambda state: connection.execute("select throw($1)", state)


async def _by_psycopg(url: str) -> Throw:
    connection = await psycopg.AsyncConnection.connect(url, autocommit=True)
    return lambda state: connection.execute("select throw(%s)", (state,))


async def _by_async_engine(url: str) -> Throw:
    engine = create_async_engine(url.replace("postgresql://", "postgresql+asyncpg://"))

    async def throw(state: str) -> None:
        async with engine.connect() as connection:
            await connection.execute(sqlalchemy.text(f"select throw('{state}')"))

    return throw


async def _by_engine(url: str) -> Throw:
    engine = sqlalchemy.create_engine(url.replace("postgresql://", "postgresql+psycopg://"))

    async def throw(state: str) -> None:
        with engine.connect() as connection:
            connection.execute(sqlalchemy.text(f"select throw('{state}')"))

    return throw


async def _by_django(url: str) -> Throw:
    from django.db.utils import ConnectionHandler

    set_up_django()
    address = urlsplit(url)
    place = parse_qs(address.query)
    login = {"NAME": address.path[1:], "USER": address.username}
    at = {"HOST": place["host"][0], "PORT": place["port"][0]}
    engine = {"ENGINE": "django.db.backends.postgresql"}
    connections = ConnectionHandler({"default": engine | login | at})

    def throw(state: str) -> None:
        with connections["default"].cursor() as cursor:
            cursor.execute("select throw(%s)", [state])

    return lambda state: asyncio.to_thread(throw, state)


DRIVERS = {
    "asyncpg": _by_asyncpg,
    "psycopg": _by_psycopg,
    "SQLAlchemy on asyncpg": _by_async_engine,
    "SQLAlchemy on psycopg": _by_engine,
    "Django": _by_django,
}
