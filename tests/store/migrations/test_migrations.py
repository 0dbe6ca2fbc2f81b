"""Migrations: applied once, by any process, and usable as plain SQL."""

import asyncio

import asyncpg
import pytest

from forge import Config, DatabaseUnavailable, Forge, SchemaMissing, Worker
from forge.store.connection.database import Database
from forge.store.migrate import Migration, all_migrations, as_sql, migrate

COLUMNS = """
    select table_name, column_name, data_type, column_default, is_nullable
    from information_schema.columns where table_name like 'forge%' order by 1, 2
"""


async def test_concurrent_migrations_apply_each_step_once(empty_url: str) -> None:
    databases = [Database(empty_url) for _ in range(5)]

    applied = await asyncio.gather(*(migrate(database) for database in databases))

    assert [step for steps in applied for step in steps] == all_migrations()


async def test_the_plain_script_comes_to_the_same_schema(empty_url: str, database_url: str) -> None:
    by_script = await asyncpg.connect(empty_url)
    by_forge = await asyncpg.connect(database_url)

    await by_script.execute(as_sql())

    assert await by_script.fetch(COLUMNS) == await by_forge.fetch(COLUMNS)
    assert await migrate(Database(empty_url)) == []
    await by_script.close()
    await by_forge.close()


async def test_a_migration_does_not_queue_claims_behind_a_long_transaction(
    empty_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("forge.store.migrate.LOCK_TIMEOUT", "200ms")
    monkeypatch.setattr("forge.store.migrate.LOCK_RETRY_DELAYS", (0.01,) * 1000)
    database, last = Database(empty_url), all_migrations()[-1]
    await migrate(database)
    reader, claimer = await asyncpg.connect(empty_url), await asyncpg.connect(empty_url)
    monkeypatch.setattr("forge.store.migrate.all_migrations", _with_a_change_of_the_jobs_table)
    await reader.execute("begin")
    await reader.execute("select from forge_jobs limit 1")
    waits: asyncio.Queue[str] = asyncio.Queue()

    migrating = asyncio.create_task(migrate(database, on_wait=waits.put_nowait))
    reason = await asyncio.wait_for(waits.get(), 20)
    # Had the migration waited for good, this would wait behind it.
    await claimer.execute("select from forge_jobs limit 1", timeout=20)
    assert not migrating.done()
    await reader.execute("commit")

    (applied,) = await asyncio.wait_for(migrating, 20)
    assert applied.version == last.version + 1
    assert f"session {reader.get_server_pid()}" in reason
    for connection in (reader, claimer):
        await connection.close()


async def test_a_migration_without_its_lock_names_the_blocking_session(
    empty_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("forge.store.migrate.LOCK_TIMEOUT", "10ms")
    monkeypatch.setattr("forge.store.migrate.LOCK_RETRY_DELAYS", (0.01,))
    await migrate(Database(empty_url))
    reader = await asyncpg.connect(empty_url, server_settings={"application_name": "report"})
    monkeypatch.setattr("forge.store.migrate.all_migrations", _with_a_change_of_the_jobs_table)
    await reader.execute("begin")
    await reader.execute("select from forge_jobs limit 1")

    with pytest.raises(DatabaseUnavailable, match=r"report\) is idle in transaction.*end that"):
        await migrate(Database(empty_url))

    await reader.close()


def _with_a_change_of_the_jobs_table() -> list[Migration]:
    known = all_migrations()
    alter = "alter table forge_jobs add column trial integer"
    return [*known, Migration(known[-1].version + 1, "trial", alter)]


async def test_a_worker_does_not_start_on_the_schema_of_an_earlier_version(
    database_url: str,
) -> None:
    psql = await asyncpg.connect(database_url)
    last = all_migrations()[-1].version
    await psql.execute("delete from forge_migrations where version = $1", last)

    async with Forge(Config(), database_url=database_url) as app:
        with pytest.raises(SchemaMissing, match=f"migration {last} .*run `forge migrate`"):
            await Worker(app).run()

    assert await psql.fetchval("select count(*) from forge_workers") == 0
    await psql.close()


async def test_a_database_of_a_later_version_is_not_changed(database_url: str) -> None:
    psql = await asyncpg.connect(database_url)
    await psql.execute("insert into forge_migrations (version, name) values (9999, 'later')")

    with pytest.raises(SchemaMissing, match="upgrade forge-jobs"):
        await migrate(Database(database_url))

    await psql.close()
