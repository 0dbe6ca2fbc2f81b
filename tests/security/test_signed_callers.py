"""A session of forge_api sees only rows of the caller that the server signed."""

import time
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from forge.store.connection import tenant as acting
from forge.store.connection.database import Database
from forge.store.connection.link import SessionOptions
from forge.store.connection.tenant import Callers
from forge.store.statement import Statement, rows
from tests.security.callers import ANN, SECRET, act, register, session, signed, tenants
from tests.store.row_security.conftest import TABLES, as_role, filled

__all__ = ["filled"]
Refused = asyncpg.InsufficientPrivilegeError
OTHER_SECRET = "another secret of the tests, long enough too"
SEES: dict[int | None, list[int | None]] = {1: [1], 2: [2], 3: [], None: [1, 2, None]}


@pytest.fixture
async def signing(filled: dict[int | None, UUID], database: Database) -> Database:
    """Rows of tenants 1, 2 and none, in a database that asks for signed callers."""
    await register(database, SECRET)
    return database


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("value", [None, ""], ids=["unset", "empty"])
@pytest.mark.parametrize("secret", [None, SECRET], ids=["plain", "signed"])
async def test_a_session_without_a_caller_sees_no_rows(
    filled: Any, database: Database, table: str, value: str | None, secret: str | None
) -> None:
    if secret is not None:
        await register(database, secret)

    async with session(database.url, value) as conn:
        assert await conn.fetchval(f"select count(*) from {table}") == 0


@pytest.mark.parametrize("table", TABLES)
async def test_a_signed_caller_sees_its_own_rows(signing: Database, table: str) -> None:
    seen = {}
    for tenant in SEES:
        for caller in (signing.callers.tenant(tenant), signing.callers.bound(tenant, ANN)):
            async with session(signing.url, caller) as conn:
                seen.setdefault(tenant, []).append(await tenants(conn, table))

    assert seen == {tenant: [own, own] for tenant, own in SEES.items()}


async def test_without_a_registered_key_plain_values_count(filled: Any, database: Database) -> None:
    for value, expected in {"1": [1], "3": [], "*": [1, 2, None]}.items():
        async with session(database.url, value) as conn:
            assert await tenants(conn) == expected
    for callers in (Callers(), Callers(SECRET)):
        async with session(database.url, callers.bound(2, ANN)) as conn:
            assert await tenants(conn) == [2]


def forged() -> dict[str, str]:
    """Return callers that were not signed with the registered key, or too long ago."""
    now = time.time()
    own = signed({"tenant_id": 1, "auth": ANN}, at=now)
    mac, expiry, _ = own.split(".", 2)
    return {
        "a plain tenant": "1",
        "an operator's star": "*",
        "unsigned": Callers().tenant(1),
        "with another secret": signed({"tenant_id": 1}, OTHER_SECRET, at=now),
        "for another tenant": own.replace('"tenant_id":1', '"tenant_id":2'),
        "with a later expiry": own.replace(expiry, str(int(expiry) + 1)),
        "without a signature": own.removeprefix(mac),
        "expired": signed({"tenant_id": 1}, at=now - 3600),
        "of an empty key": signed({"tenant_id": 1}, "", at=now),
        "not hexadecimal": "x" * 64 + own.removeprefix(mac),
        "not JSON": "{}",
        "quoted": "' or true --",
    }


@pytest.mark.parametrize("kind", [*forged()])
async def test_a_caller_that_the_server_did_not_sign_is_refused(
    signing: Database, kind: str
) -> None:
    async with session(signing.url, forged()[kind]) as conn:
        for statement in (
            "select from forge_jobs",
            "select forge_current_tenant()",
            "select forge_is_operator()",
            "insert into forge_jobs (job_type, tenant_id) values ('x', 1)",
            "insert into forge_audit_events (event, tenant_id) values ('x', 1)",
        ):
            with pytest.raises(Refused, match=r"forge\.tenant_id (is not signed|expired)"):
                await conn.execute(statement)


async def test_a_caller_that_expires_in_a_transaction_keeps_it_to_the_end(
    signing: Database,
) -> None:
    async with session(signing.url) as conn:
        # Signed so long ago that it expires within the next second.
        lasts = signed({"tenant_id": 1}, at=time.time() - 599)
        async with conn.transaction():
            await act(conn, lasts)
            await conn.execute("select pg_sleep(1.5)")
            assert await tenants(conn) == [1]
        with pytest.raises(Refused, match="expired at"):
            await tenants(conn)


async def test_the_previous_key_is_accepted_until_the_next_rotation(signing: Database) -> None:
    secrets = [SECRET, OTHER_SECRET, "the third secret of these tests, long enough"]
    accepted = []
    for newest in secrets:
        await register(signing, newest)
        await register(signing, newest)  # which changes nothing
        works = []
        for secret in secrets:
            async with session(signing.url, Callers(secret).tenant(1)) as conn:
                try:
                    works.append(await tenants(conn) == [1])
                except Refused:
                    works.append(False)
        accepted.append(works)

    assert accepted == [[True, False, False], [True, True, False], [False, True, True]]


@pytest.mark.parametrize("role", ["forge_api", "forge_worker"])
@pytest.mark.parametrize(
    "statement",
    [
        "select * from forge_signing_keys",
        "select outer_pad from forge_signing_keys",
        "copy forge_signing_keys to stdout",
        "insert into forge_signing_keys values (false, '', '')",
        "update forge_signing_keys set inner_pad = ''",
        "delete from forge_signing_keys",
        "select query_to_xml('select * from forge_signing_keys', true, true, '')",
        "create temp view keys as select * from forge_signing_keys; table keys",
    ],
)
async def test_only_the_owner_reads_the_keys(signing: Database, role: str, statement: str) -> None:
    conn = await asyncpg.connect(as_role(role, signing.url))

    with pytest.raises(Refused, match="permission denied"):
        await conn.execute(statement)

    await conn.close()


@pytest.mark.parametrize("setting", ["role", "session_authorization"])
@pytest.mark.parametrize("whose", ["forge_worker", "forge", "pg_read_all_data"])
async def test_forge_api_cannot_switch_to_another_role(
    signing: Database, setting: str, whose: str
) -> None:
    async with session(signing.url) as conn:
        with pytest.raises(Refused, match="permission denied"):
            await conn.execute("select set_config($1, $2, false)", setting, whose)
        assert await conn.fetchval("select current_user") == "forge_api"


async def test_what_forge_signs_is_not_seen_by_other_sessions_of_the_login(
    signing: Database,
) -> None:
    url = as_role("forge_api", signing.url)
    looks: Statement[Any] = Statement("select count(*) from forge_jobs", (), rows)
    database = Database(url, pool_size=1, session=SessionOptions(Callers(SECRET)))
    pooled = Database(url, pool_size=1, session=SessionOptions(Callers(SECRET), pooler=True))

    async with session(signing.url) as spy:
        for where in (database, pooled):
            for tenant in (1, None):
                await where.run(looks, tenant)
                seen = await spy.fetch("select query from pg_stat_activity")
                assert not any('tenant_id":' in row["query"] for row in seen)
        async with database.acquire() as conn:
            await acting.execute(conn, acting.act(database.callers.tenant(1)))
            seen = await spy.fetch("select query from pg_stat_activity where usename = 'forge_api'")
            assert any("set_config('forge.tenant_id', $1" in row["query"] for row in seen)
            assert not any('tenant_id":' in row["query"] for row in seen)

    await database.close()
    await pooled.close()


async def test_a_link_signs_again_before_its_caller_expires(
    signing: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = SessionOptions(Callers(SECRET))
    database = Database(as_role("forge_api", signing.url), pool_size=1, session=session)
    database.callers.renew_after = 0.0
    ask: Statement[Any] = Statement("select current_setting('forge.tenant_id') as value", (), rows)

    # Signed when the clock of this process was almost ten minutes behind.
    monkeypatch.setattr("forge.store.connection.tenant.time.time", lambda: 1.0)
    (first,) = await database.run(ask)
    monkeypatch.undo()
    (second,) = await database.run(ask)

    await database.close()
    assert first["value"].split(".")[1] == "601"
    assert int(second["value"].split(".")[1]) > time.time()


async def test_estimates_need_an_operator_or_a_login_that_is_not_bound(
    signing: Database, psql: Any
) -> None:
    await psql.execute("analyze forge_jobs")
    estimates = "select count(*) from forge_job_estimates()"

    shown = {}
    for caller in (None, signing.callers.tenant(1), signing.callers.tenant(None)):
        async with session(signing.url, caller) as conn:
            shown[len(shown)] = bool(await conn.fetchval(estimates))
    worker = await asyncpg.connect(as_role("forge_worker", signing.url))

    assert shown == {0: False, 1: False, 2: True}
    assert await worker.fetchval(estimates) > 0
    assert await psql.fetchval(estimates) > 0
    await worker.close()
