"""`conn=`: a job is part of the caller's transaction, with every supported driver."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import psycopg
import pytest
import sqlalchemy
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from forge import DatabaseUnavailable, Forge, ForgeError, InvalidPayload
from forge.core.job import JobRecord
from forge.definitions.job import JobDefinition
from forge.store import jobs
from forge.store.borrowed import run_on
from tests.store.borrowed.conftest import count
from tests.store.connections import ASYNC, SYNC, Lent, Open, on

OPTIONS: dict[str, Any] = {
    "priority": "high",
    "tenant_id": 2**62,
    "correlation_id": uuid4(),
    "queue": "späte \\ queue",
    "tags": ["a", 'b"c\\d', "e,f{}", "null"],
    "expires_at": datetime(2132, 1, 1, tzinfo=UTC),
    "parent_id": uuid4(),
    "retry_of": uuid4(),
    "payload_version": "2.1",
    "auth": {"actor": "ann", "odd": 'back\\slash "quote"\n\ttab'},
    "meta": {"é": [1, None, True]},
    # whatever it holds, it stays one value: a line of its own would be a job of its own
    "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01 \\N \\.",
}
AT = datetime(2131, 5, 6, 7, 8, 9, 123456, tzinfo=UTC)
OF_ANY_DRIVER = (asyncpg.PostgresError, psycopg.Error, sqlalchemy.exc.DBAPIError)
INPUT = {"text": 'tab\t newline\n backslash\\ \\N \\. quote" ünï 🎈', "n": 1.5, "none": None}


@pytest.fixture(params=SYNC | ASYNC)
async def lent(request: pytest.FixtureRequest, database_url: str) -> AsyncIterator[Lent]:
    """A connection of each kind, in a transaction."""
    opened: Open = (SYNC | ASYNC)[request.param]
    async with opened(database_url) as lent:
        yield lent


@pytest.fixture
def keyed(app: Forge) -> JobDefinition[Any, Any]:
    @app.job(idempotent="input.n")
    async def keyed(ctx: Any, input: dict) -> None: ...

    return keyed


async def test_a_job_is_there_when_its_transaction_is_committed_and_not_before(
    lent: Lent, plain: JobDefinition[Any, Any], psql: Any
) -> None:
    await plain.dispatch(INPUT, conn=lent.conn)
    before = await count(psql)
    await lent.commit()

    assert (before, await count(psql)) == (0, 1)


async def test_a_job_goes_with_its_transaction(
    lent: Lent, plain: JobDefinition[Any, Any], keyed: JobDefinition[Any, Any], psql: Any
) -> None:
    await plain.dispatch(INPUT, conn=lent.conn)
    await keyed.dispatch(INPUT, conn=lent.conn)
    await lent.rollback()

    assert await count(psql) == 0
    assert await psql.fetchval("select count(*) from forge_idempotency_keys") == 0


async def test_every_option_arrives_as_it_was_given(
    lent: Lent, app: Forge, plain: JobDefinition[Any, Any]
) -> None:
    handle = await plain.dispatch(INPUT, conn=lent.conn, scheduled_at=AT, **OPTIONS)
    await lent.commit()

    check_options(await app.get(handle.id))


async def test_copied_jobs_arrive_as_they_were_given(
    lent: Lent, app: Forge, plain: JobDefinition[Any, Any], psql: Any
) -> None:
    made = await app.dispatch_many(
        plain, [INPUT] * 1201, conn=lent.conn, scheduled_at=AT, **OPTIONS
    )
    await lent.commit()

    assert (made, await count(psql)) == (1201, 1201)
    check_options(await app.get(await psql.fetchval("select max(id::text)::uuid from forge_jobs")))


@pytest.mark.parametrize("tags", [[], ["one"]])
async def test_few_tags_and_none_are_copied_alike(
    lent: Lent, app: Forge, plain: JobDefinition[Any, Any], psql: Any, tags: list[str]
) -> None:
    await app.dispatch_many(plain, [{}], conn=lent.conn, tags=tags, tenant_id=-(2**63))
    await lent.commit()

    found = await psql.fetchrow("select tags, tenant_id, tags = $1 as same from forge_jobs", tags)
    assert tuple(found) == (tags, -(2**63), True)


async def test_a_connection_that_writes_latin_copies_what_latin_cannot_write(
    database_url: str, app: Forge, plain: JobDefinition[Any, Any], psql: Any
) -> None:
    with psycopg.connect(database_url, client_encoding="LATIN1") as conn:
        app.sync.dispatch_many(plain, [INPUT] * 3, conn=conn, scheduled_at=AT, **OPTIONS)
        with pytest.raises(InvalidPayload):
            app.sync.dispatch_many(plain, [INPUT, {"n": b"bytes"}], conn=conn)
        encoding = conn.info.parameter_status("client_encoding")
        assert conn.execute("select 'ä'").fetchone() == ("ä",)

    assert (encoding, await count(psql)) == ("LATIN1", 3)
    check_options(await app.get(await psql.fetchval("select max(id::text)::uuid from forge_jobs")))


def check_options(found: JobRecord) -> None:
    given = {"input": INPUT, "scheduled_at": AT} | OPTIONS | {"priority": 75}
    assert {name: getattr(found, name) for name in given} == given


async def test_a_delay_is_counted_from_the_transaction(
    lent: Lent, app: Forge, plain: JobDefinition[Any, Any], psql: Any
) -> None:
    await plain.dispatch(conn=lent.conn, delay="90m")
    await app.dispatch_many(plain, [{}, {}], conn=lent.conn, delay=timedelta(minutes=90))
    await lent.commit()

    delays = await psql.fetch("select scheduled_at - created_at as delay from forge_jobs")
    assert [row["delay"] for row in delays] == [timedelta(minutes=90)] * 3


async def test_a_key_stands_for_one_job(
    lent: Lent, app: Forge, keyed: JobDefinition[Any, Any], psql: Any
) -> None:
    first = await keyed.dispatch({"n": 1}, conn=lent.conn)
    again = await keyed.dispatch({"n": 1}, conn=lent.conn)
    new = await app.dispatch_many(keyed, ({"n": n} for n in range(1500)), conn=lent.conn)
    await lent.commit()

    assert (again.id, again.deduplicated, first.deduplicated) == (first.id, True, False)
    assert (new, await count(psql)) == (1499, 1500)


async def test_a_type_known_elsewhere_is_looked_up_on_the_connection(
    lent: Lent, app: Forge, psql: Any
) -> None:
    await psql.execute(
        "insert into forge_job_types (name, queue, priority) values ('elsewhere', 'q', 25)"
    )

    handle = await app.dispatch("elsewhere", {"a": 1}, conn=lent.conn)
    await lent.commit()

    found = await app.get(handle.id)
    assert (found.queue, found.priority) == ("q", 25)


async def test_jobs_are_read_back_alike_on_every_connection(
    lent: Lent, plain: JobDefinition[Any, Any]
) -> None:
    handle = await plain.dispatch(INPUT, conn=lent.conn, scheduled_at=AT, **OPTIONS)

    (row,) = await run_on(lent.conn, jobs.get([handle.id]))

    assert isinstance(handle.id, UUID)
    if isinstance(row["input"], str):
        check_options(JobRecord.from_row(row))
    else:  # a codec of the caller's own has decoded it already
        assert {name: row[name] for name in ("input", "auth", "meta")} == {
            "input": INPUT,
            "auth": OPTIONS["auth"],
            "meta": OPTIONS["meta"],
        }


@pytest.mark.parametrize("name", ["plain", "keyed"])
async def test_a_bad_input_undoes_its_many_and_leaves_the_transaction_usable(
    lent: Lent, app: Forge, request: pytest.FixtureRequest, psql: Any, name: str
) -> None:
    kind = request.getfixturevalue(name)
    await kind.dispatch({"n": "kept"}, conn=lent.conn)

    def inputs() -> Any:
        yield from ({"n": n} for n in range(2500))
        yield {"n": b"bytes"}

    with pytest.raises(InvalidPayload, match="input 2500"):
        await app.dispatch_many(kind, inputs(), conn=lent.conn)
    await kind.dispatch({"n": "kept too"}, conn=lent.conn)
    await lent.commit()

    assert await count(psql) == 2


async def test_a_failed_transaction_is_named_as_such(
    lent: Lent, app: Forge, plain: JobDefinition[Any, Any], psql: Any
) -> None:
    await plain.dispatch(conn=lent.conn)
    with pytest.raises(OF_ANY_DRIVER, match="division by zero"):
        await run_on(lent.conn, jobs.Statement("select 1/0", (), list))

    with pytest.raises(ForgeError, match="roll it back"):
        await plain.dispatch(conn=lent.conn)
    with pytest.raises(ForgeError, match="roll it back"):
        await app.dispatch_many(plain, [{}], conn=lent.conn)

    await lent.rollback()
    assert await count(psql) == 0


async def test_a_connection_lost_in_between_is_named_as_such(
    lent: Lent, plain: JobDefinition[Any, Any], psql: Any
) -> None:
    await plain.dispatch(conn=lent.conn)
    await psql.execute(
        "select pg_terminate_backend(pid) from pg_stat_activity "
        "where state = 'idle in transaction' and datname = current_database()"
    )

    with pytest.raises(DatabaseUnavailable, match="connection"):
        await plain.dispatch(conn=lent.conn)


async def test_a_notification_is_sent_on_commit(
    lent: Lent, plain: JobDefinition[Any, Any], psql: Any
) -> None:
    heard: list[str] = []
    await psql.add_listener("forge_wake", lambda *note: heard.append(note[3]))

    await plain.dispatch(conn=lent.conn, notify=True)
    await psql.execute("select 1")
    before = list(heard)
    await lent.commit()
    await psql.execute("select 1")

    assert (before, heard) == ([], [""])


async def test_a_session_within_run_sync_serves_code_without_a_loop(
    database_url: str, app: Forge, plain: JobDefinition[Any, Any], psql: Any
) -> None:
    def deep_inside(session: Session) -> None:
        app.sync.dispatch(plain, INPUT, conn=session)
        app.sync.dispatch_many(plain, [INPUT] * 3, conn=session)

    engine = create_async_engine(on("asyncpg", database_url))
    async with AsyncSession(engine) as session:
        await session.run_sync(deep_inside)
        before = await count(psql)
        await session.commit()
    await engine.dispose()

    assert (before, await count(psql)) == (0, 4)


async def test_the_callers_own_rows_and_the_job_live_and_die_together(
    database_url: str, plain: JobDefinition[Any, Any], psql: Any
) -> None:
    await psql.execute("create table orders (id int primary key)")
    engine = create_async_engine(on("asyncpg", database_url))

    async def order(number: int) -> None:
        async with AsyncSession(engine) as session, session.begin():
            await plain.dispatch(conn=session)  # before the session has said anything itself
            await session.execute(sqlalchemy.text(f"insert into orders values ({number})"))

    await order(2)
    with pytest.raises(sqlalchemy.exc.IntegrityError):
        await order(2)
    await engine.dispose()

    assert await count(psql) == 1
    assert await psql.fetchval("select array_agg(id) from orders") == [2]
