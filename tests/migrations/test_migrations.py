"""Migrations: applied once, by whoever comes, and usable as plain SQL."""

import asyncio

import asyncpg
import pytest

from forge import SchemaMissing
from forge.store.database import Database
from forge.store.migrate import all_migrations, as_sql, migrate

COLUMNS = """
    select table_name, column_name, data_type, column_default, is_nullable
    from information_schema.columns where table_name like 'forge%' order by 1, 2
"""


async def test_many_who_migrate_at_once_apply_each_migration_once(empty_url: str) -> None:
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


async def test_a_database_of_a_later_version_is_left_alone(database_url: str) -> None:
    psql = await asyncpg.connect(database_url)
    await psql.execute("insert into forge_migrations (version, name) values (9999, 'later')")

    with pytest.raises(SchemaMissing, match="upgrade forge-jobs"):
        await migrate(Database(database_url))

    await psql.close()
