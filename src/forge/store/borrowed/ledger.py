"""Migrations in the transaction of a borrowed connection, for frameworks that migrate."""

from typing import Any

from forge.store import migrate
from forge.store.borrowed import run_on
from forge.store.migrate import LOCK, LOCK_TIMEOUT, Migration
from forge.store.statement import Rows, Statement, load, nothing, rows


async def apply_on(conn: Any, migration: Migration) -> None:
    """Apply and record one migration, unless it is applied.

    It waits briefly for locks on the tables: run it in a savepoint, and again after an error.
    """
    await run_on(conn, Statement(load("ledger/lock_in_transaction"), (LOCK,), nothing))
    if migration.version in {row["version"] for row in await _applied(conn)}:
        return
    await run_on(conn, Statement(load("ledger/lock_briefly"), (LOCK_TIMEOUT,), nothing))
    for script in migrate.scripts_of(migration):
        await run_on(conn, Statement(script, (), nothing))
    recorded = (migration.version, migration.name)
    await run_on(conn, Statement(load("ledger/record"), recorded, nothing))


async def missing_on(conn: Any) -> list[Migration]:
    """Return the migrations that are not applied to this database."""
    applied = {row["version"] for row in await _applied(conn)}
    return [one for one in migrate.all_migrations() if one.version not in applied]


async def empty_on(conn: Any) -> None:
    """Delete every job, schedule and record, as between two tests."""
    await run_on(conn, Statement(load("ledger/empty"), (), nothing))


async def _applied(conn: Any) -> Rows:
    (ledger,) = await run_on(conn, Statement(load("ledger/is_known"), (), rows))
    if not ledger["known"]:
        return []
    found = await run_on(conn, Statement(load("ledger/applied"), (), rows))
    migrate.reject_unreleased(found)
    return found
