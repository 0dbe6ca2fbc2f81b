"""forge_dispatch() follows the rules of dispatch in Python."""

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from forge import Forge, ForgeError
from forge.core.job import JobRecord
from forge.store import job_types
from forge.store.connection.database import Database
from forge.store.roles import grant_roles
from forge.store.statement import load

AT = datetime(2131, 5, 6, 7, 8, 9, tzinfo=UTC)


@pytest.fixture
async def app(database: Database, database_url: str) -> AsyncIterator[Forge]:
    """An app whose types are known in the database."""
    app = Forge(database_url=database_url)

    async def handle(ctx: Any, input: dict) -> None: ...

    app.job(name="plain")(handle)
    app.job(
        name="special",
        queue="q",
        priority="low",
        max_attempts=7,
        worker_capability="media",
    )(handle)
    app.job(name="whole", idempotent=True)(handle)
    app.job(name="paid", idempotent="input.payment.id")(handle)
    types = [own.job_type for own in app.definitions.values()]
    await database.run(job_types.register(types))
    yield app
    await app.close()


@pytest.fixture
async def conn(app: Forge, database_url: str) -> AsyncIterator["asyncpg.Connection[Any]"]:
    conn = await asyncpg.connect(database_url)
    yield conn
    await conn.close()


async def test_a_longer_list_of_arguments_replaces_the_shorter_one_with_its_grants(
    database: Database, psql: Any
) -> None:
    await grant_roles(database)
    of_dispatch = "from pg_proc where proname = 'forge_dispatch'"
    signature = await psql.fetchval(f"select oid::regprocedure::text {of_dispatch}")
    await psql.execute(f"drop function {signature}")
    await psql.execute(
        "create function forge_dispatch(job_type text) returns uuid return null::uuid"
    )
    await psql.execute("grant execute on function forge_dispatch(text) to forge_api")

    await psql.execute(load("functions/dispatch"))

    found = await psql.fetch(
        "select oid::regprocedure::text as signature, "
        "'forge_api'::regrole = any (array(select grantee from aclexplode(proacl))) as is_granted "
        + of_dispatch
    )
    assert [tuple(row) for row in found] == [(signature, True)]


async def dispatched(conn: Any, arguments: str, *values: Any) -> JobRecord:
    job_id = await conn.fetchval(f"select forge_dispatch({arguments})", *values)
    return JobRecord.from_row(await conn.fetchrow("select * from forge_jobs where id = $1", job_id))


async def test_it_makes_a_pending_job_with_the_defaults_of_its_type(conn: Any) -> None:
    plain = await dispatched(conn, """'plain', '{"format":"csv"}'""")
    special = await dispatched(conn, "'special'")

    assert (plain.input, plain.status, plain.priority) == ({"format": "csv"}, "pending", 50)
    assert (plain.max_attempts, plain.queue, plain.idempotency_key) == (3, "default", None)
    assert plain.id.version == 7
    assert (special.input, special.queue, special.priority) == ({}, "q", 25)
    assert (special.max_attempts, special.worker_capability) == (7, "media")


async def test_it_makes_the_same_row_as_python(app: Forge, conn: Any) -> None:
    options: dict[str, Any] = {
        "priority": "critical",
        "scheduled_at": AT,
        "idempotency_key": "once",
        "tenant_id": 7,
        "correlation_id": uuid4(),
        "queue": "other",
        "tags": ["a", "b"],
        "expires_at": AT,
        "auth": {"actor": "ann"},
        "meta": {"a": 1},
    }
    names = ", ".join(f"{name} => ${n}" for n, name in enumerate(options, 1))
    values = [json.dumps(v) if isinstance(v, dict) else v for v in options.values()]

    by_sql = await dispatched(conn, f"""'special', '{{"a": 1}}', {names}""", *values)
    options["idempotency_key"] = "twice"
    by_python = await (await app.dispatch("special", {"a": 1}, **options)).get()

    differ = {
        name for name in JobRecord.__slots__ if getattr(by_sql, name) != getattr(by_python, name)
    }
    assert differ == {"id", "created_at", "idempotency_key"}


@pytest.mark.parametrize(
    ("given", "value"),
    [("critical", 100), ("High", 75), ("50", 50), ("low", 25), ("0", 0), ("BACKGROUND", 0)],
)
async def test_a_priority_is_a_name_or_a_value(conn: Any, given: str, value: int) -> None:
    assert (await dispatched(conn, "'plain', priority => $1", given)).priority == value


async def test_a_delay_is_counted_from_the_transaction(conn: Any) -> None:
    job = await dispatched(conn, "'plain', delay => '90 minutes'")

    assert job.scheduled_at - job.created_at == timedelta(minutes=90)


async def test_a_key_stands_for_one_job_by_every_way_of_dispatching(app: Forge, conn: Any) -> None:
    by_sql = await conn.fetchval("select forge_dispatch('plain', idempotency_key => 'k')")
    again = await conn.fetchval("select forge_dispatch('plain', idempotency_key => 'k')")
    by_python = await app.dispatch("plain", idempotency_key="k")
    of_a_tenant = await conn.fetchval(
        "select forge_dispatch('plain', idempotency_key => 'k', tenant_id => 1)"
    )

    assert by_sql == again == by_python.id != of_a_tenant
    assert by_python.deduplicated
    assert await conn.fetchval("select count(*) from forge_jobs") == 2


async def test_a_second_dispatch_reports_deduplicated(conn: Any) -> None:
    said: list[str] = []
    conn.add_log_listener(lambda _, message: said.append(message.message))

    first = await conn.fetchval("select forge_dispatch('plain', idempotency_key => 'k')")
    before = list(said)
    await conn.fetchval("select forge_dispatch('plain', idempotency_key => 'k')")

    assert before == []
    assert said == [f"deduplicated: idempotency key k already belongs to job {first}"]


async def test_concurrent_dispatches_of_a_key_make_one_job(conn: Any, database_url: str) -> None:
    other = await asyncpg.connect(database_url)
    async with conn.transaction():
        first = await conn.fetchval("select forge_dispatch('plain', idempotency_key => 'k')")
        second = asyncio.ensure_future(
            other.fetchval("select forge_dispatch('plain', idempotency_key => 'k')")
        )
        await until_blocked(conn, other.get_server_pid())

    assert await second == first
    await other.close()


async def until_blocked(conn: Any, pid: int) -> None:
    async with asyncio.timeout(30):
        while not await conn.fetchval("select cardinality(pg_blocking_pids($1)) > 0", pid):
            pass


@pytest.mark.parametrize(
    "input",
    [{}, {"b": 1, "a": [1.50, "é", None]}, {"a": 1e16}, {"nested": {"z": True, "aa": -0.0}}],
)
async def test_the_key_of_a_whole_input_is_that_of_python(
    app: Forge, conn: Any, input: Any
) -> None:
    by_python = await app.dispatch("whole", input)
    by_sql = await conn.fetchval("select forge_dispatch('whole', $1)", json.dumps(input))

    assert by_sql == by_python.id


VALUES = (
    st.text(max_size=50)
    | st.integers()
    | st.integers(-(10**240), 10**240)
    | st.booleans()
    | st.floats()
    | st.sampled_from([0.0, -0.0, 1e15, 1e16, 1.5e16, 1e22, 1e-5, 1e-7, 5e-324, 1e300, 0.1, 100.0])
    | st.sampled_from(["", " ", "\x7f", "\x01", "\u2028", "a\nb", "true", "1", "1.0", "🎈" * 250])
    | st.none()
    | st.just([1])
    | st.just({"a": 1})
)


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=VALUES)
async def test_the_key_at_a_path_is_that_of_python(app: Forge, conn: Any, value: Any) -> None:
    input = {"payment": {"id": value}}
    try:
        by_python: UUID | None = (await app.dispatch("paid", input)).id
    except ForgeError:
        by_python = None
    try:
        by_sql = await conn.fetchval("select forge_dispatch('paid', $1)", json.dumps(input))
    except asyncpg.PostgresError:
        by_sql = None

    assert by_sql == by_python


@pytest.mark.parametrize(
    ("arguments", "state", "message", "hint"),
    [
        ("'nobody'", "42704", "unknown job type 'nobody'", "forge migrate --app"),
        ("null", "42704", "unknown job type null", "forge migrate --app"),
        ("'forge.cancel'", "42501", "built-in job type", "API"),
        (
            "'plain', scheduled_at => now(), delay => '1s'",
            "22023",
            "either scheduled_at or delay",
            "leave one out",
        ),
        ("'plain', priority => 'urgent'", "22023", "unknown priority 'urgent'", "high (75)"),
        ("'plain', priority => '60'", "22023", "unknown priority '60'", "high (75)"),
        ("'plain', delay => '-1s'", "22023", "delay -00:00:01", "zero or more"),
        ("'plain', delay => '200 years'", "22023", "delay 200 years", "36500 days"),
        ("'plain', scheduled_at => 'infinity'", "22023", "scheduled_at infinity", "1970 and 9000"),
        ("'plain', scheduled_at => '-infinity'", "22023", "-infinity", "1970 and 9000"),
        ("'plain', expires_at => 'infinity'", "22023", "expires_at infinity", "1970 and 9000"),
        ("'plain', queue => ' '", "22023", "queue must be text", "visible"),
        ("'plain', queue => repeat('x', 256)", "22001", "at most 255", "shorten"),
        ("'plain', idempotency_key => ''", "22023", "idempotency_key must be", "visible"),
        ("'plain', idempotency_key => E'a\\nb'", "22023", "control character", "remove"),
        ("'plain', tags => array['a', '']", "22023", "a tag must be", "visible"),
        ("'plain', tags => array['a', null]", "22023", "a tag must be", "visible"),
        ("'paid', '{}'", "22023", "paid needs input.payment.id", "idempotency_key =>"),
        (
            "'plain', to_jsonb(repeat('x', 300000))",
            "54000",
            "the limit is 262144",
            "pass a reference",
        ),
    ],
)
async def test_what_python_refuses_is_refused(
    conn: Any, arguments: str, state: str, message: str, hint: str
) -> None:
    with pytest.raises(asyncpg.PostgresError) as refused:
        await conn.fetchval(f"select forge_dispatch({arguments})")

    assert refused.value.sqlstate == state
    assert message in str(refused.value)
    assert hint in refused.value.hint
    assert await conn.fetchval("select count(*) from forge_jobs") == 0
    assert await conn.fetchval("select count(*) from forge_idempotency_keys") == 0


async def test_a_job_goes_with_its_transaction(conn: Any) -> None:
    transaction = conn.transaction()
    await transaction.start()
    await conn.fetchval("select forge_dispatch('plain', idempotency_key => 'k')")
    await transaction.rollback()

    assert await conn.fetchval("select count(*) from forge_jobs") == 0
    assert await conn.fetchval("select count(*) from forge_idempotency_keys") == 0


async def test_a_trigger_dispatches(conn: Any) -> None:
    await conn.execute("""
        create table users (id int primary key);
        create function welcome() returns trigger language plpgsql set search_path = '' as $$
        begin
            perform public.forge_dispatch('plain', jsonb_build_object('user', new.id));
            return new;
        end $$;
        create trigger welcome after insert on users for each row execute function welcome();
        insert into users select generate_series(1, 3);
    """)

    found = await conn.fetch("select input from forge_jobs order by input")
    assert [json.loads(row["input"]) for row in found] == [{"user": n} for n in (1, 2, 3)]


async def test_notify_wakes_workers(conn: Any) -> None:
    heard: list[str] = []
    await conn.add_listener("forge_wake", lambda *note: heard.append(note[2]))

    await conn.fetchval("select forge_dispatch('plain')")
    before = list(heard)
    await conn.fetchval("select forge_dispatch('plain', notify => true)")
    await conn.fetchval("select 1")

    assert (before, heard) == ([], ["forge_wake"])
