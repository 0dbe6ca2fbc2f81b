"""Migrations since the previous version: no change of old ones, no long locks on large tables."""

import re
import zipfile
from collections.abc import AsyncIterator

import asyncpg
import pytest

from forge.store.migrate import Migration, all_migrations, script_of, scripts_of
from tests.upgrades.conftest import WHEEL

# One row or more per job: a scan or a rewrite of these takes minutes.
LARGE = (
    "forge_jobs",
    "forge_attempts",
    "forge_attempt_logs",
    "forge_dead_letters",
    "forge_audit_events",
    "forge_idempotency_keys",
)
FILES = "select relname, relfilenode from pg_class where relname = any ($1)"
# Of the session, also of its earlier transactions; index builds and checks of rows count, too.
SCANS = "select relname, seq_scan from pg_stat_xact_user_tables where relname = any ($1)"


def previous_migrations() -> dict[str, str]:
    with zipfile.ZipFile(WHEEL) as wheel:
        names = [name for name in wheel.namelist() if name.startswith("forge/sql/migrations/")]
        return {name.rpartition("/")[2]: wheel.read(name).decode() for name in names}


PREVIOUS = previous_migrations()
NEW = [step for step in all_migrations() if f"{step}.sql" not in PREVIOUS]


@pytest.mark.parametrize("step", all_migrations()[: len(PREVIOUS)], ids=str)
def test_a_migration_of_the_previous_version_is_unchanged(step: Migration) -> None:
    before = PREVIOUS.get(f"{step}.sql", "")

    assert statements(step.sql) == statements(before), "add a migration instead"


async def test_new_migrations_neither_scan_nor_rewrite_large_tables(empty_url: str) -> None:
    connection = await asyncpg.connect(empty_url)
    for step in all_migrations()[: len(PREVIOUS)]:
        await connection.execute(script_of(step))

    found = [found async for found in slow_steps(connection, NEW)]

    assert found == [], "build it elsewhere, as `index_waiting` in forge/store/migrate.py does"
    await connection.close()


@pytest.mark.parametrize(
    "sql",
    [
        "create index trial on forge_jobs (tags)",
        "alter table forge_attempts alter column attempt type bigint",
        "alter table forge_jobs add constraint trial check (lease >= 0)",
        "alter table forge_attempts alter column error set not null",
        "update forge_dead_letters set notes = ''",
        "alter table forge_jobs add column trial uuid default gen_random_uuid()",
    ],
)
async def test_slow_changes_are_found(database_url: str, sql: str) -> None:
    connection = await asyncpg.connect(database_url)

    assert [found async for found in slow_steps(connection, [Migration(9999, "trial", sql)])]

    await connection.close()


@pytest.mark.parametrize(
    "sql",
    [
        "alter table forge_jobs add column trial integer not null default 7",
        "alter table forge_jobs add constraint trial check (lease >= 0) not valid",
        "create index trial on forge_workers (pid)",
    ],
)
async def test_quick_changes_are_not(database_url: str, sql: str) -> None:
    connection = await asyncpg.connect(database_url)

    assert not [found async for found in slow_steps(connection, [Migration(9999, "trial", sql)])]

    await connection.close()


async def slow_steps(
    connection: "asyncpg.Connection[asyncpg.Record]", steps: list[Migration]
) -> AsyncIterator[str]:
    """Apply migrations, and return what they do to each large table that takes long."""
    for step in steps:
        async with connection.transaction():
            before = [dict(await connection.fetch(facts, LARGE)) for facts in (FILES, SCANS)]
            for script in scripts_of(step):
                await connection.execute(script)
            after = [dict(await connection.fetch(facts, LARGE)) for facts in (FILES, SCANS)]
        for table in LARGE:
            if any(now[table] != then[table] for then, now in zip(before, after, strict=True)):
                yield f"{step}: {table}"


def statements(sql: str) -> str:
    """Return SQL without its comments."""
    return re.sub(r"\s*--.*", "", sql)
