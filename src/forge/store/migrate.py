"""Migrations: numbered SQL files, each applied once, in order, by one process at a time."""

import asyncio
import re
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import asyncpg

from forge.core.errors import DatabaseUnavailable, SchemaMissing
from forge.store.connection.database import Database
from forge.store.connection.driver_errors import DRIVER_ERRORS, translated
from forge.store.connection.link import close_quietly
from forge.store.statement import Rows, Statement, load

LOCK = 0x466F726765  # "Forge": the advisory lock of a running migration

# How long a migration waits for a lock: claims are blocked in the meantime.
LOCK_TIMEOUT = "1s"
# Seconds between attempts, about two minutes in total.
LOCK_RETRY_DELAYS = (0.5, 1.0, 2.0, *[5.0] * 24)
# How many sessions that hold the lock are named in a message.
MAX_BLOCKERS_NAMED = 3


class Migration(NamedTuple):
    """One step of the schema."""

    version: int
    name: str
    sql: str

    def __str__(self) -> str:
        return f"{self.version:04}_{self.name}"


def all_migrations() -> list[Migration]:
    """Return every migration in order."""
    folder = files("forge").joinpath("sql", "migrations")
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return [_read(name, folder.joinpath(name).read_text(encoding="utf-8")) for name in names]


async def migrate(
    database: Database, on_wait: Callable[[str], None] = lambda reason: None
) -> list[Migration]:
    """Apply the missing migrations and return them; safe to call from many processes at once.

    `on_wait` is called with the reason whenever a migration waits for another session's lock.
    """
    try:
        connection = await database.connect(planned=False)
        try:
            await connection.execute(load("ledger/lock"), LOCK)
            missing = await pending(connection)
            for migration in missing:
                await _apply_when_free(connection, migration, on_wait)
            return missing
        finally:
            await close_quietly(connection)
    except DRIVER_ERRORS as error:
        raise translated(error, database.place) from error


async def index_waiting(database: Database) -> str | None:
    """Create the index for `[server] max_pending_per_tenant` if missing; return what was done.

    It uses its own connection: it can take long, and cannot run in a transaction.
    """
    try:
        connection = await database.connect(planned=False)
        try:
            return await _index_waiting(connection)
        finally:
            await close_quietly(connection)
    except DRIVER_ERRORS as error:
        raise translated(error, database.place) from error


async def pending(connection: "asyncpg.Connection[Any]") -> list[Migration]:
    """Return the migrations that are not applied to this database yet."""
    known = await connection.fetchval(load("ledger/is_known"))
    found = await connection.fetch(load("ledger/applied")) if known else []
    reject_unreleased(found)
    applied = {row["version"] for row in found}
    migrations = all_migrations()
    if unknown := applied - {migration.version for migration in migrations}:
        raise SchemaMissing(
            f"the database has migration {max(unknown)}, which this version of Forge does not "
            "know; upgrade forge-jobs here"
        )
    return [migration for migration in migrations if migration.version not in applied]


def reject_unreleased(applied: Rows) -> None:
    """Raise SchemaMissing if an applied migration differs in name from ours with its number."""
    for version, name in sorted((row["version"], row["name"]) for row in applied):
        ours = _names().get(version, name)
        if name != ours:
            script = files("forge").joinpath("sql", "ledger", "drop_all.sql")
            raise SchemaMissing(
                "the database was created by an unreleased version of Forge and cannot be migrated "
                f"(its migration {version:04} is {name}, not {ours}); create a new database and "
                "set FORGE_DATABASE_URL or [database] url to it, or delete Forge's tables with "
                f'every job in them by `psql "$FORGE_DATABASE_URL" -f {script}`, then run '
                "`forge migrate`. To replace an embedded database, delete its folder ([embedded] "
                "folder, by default .forge)"
            )


def as_sql() -> str:
    """Return all migrations as one script, for use with another migration tool."""
    return "\n".join(map(script_of, all_migrations()))


def script_of(migration: Migration) -> str:
    """Return one migration as a script that also records it."""
    record = load("ledger/record")
    record = record.replace("$1", str(migration.version)).replace("$2", f"'{migration.name}'")
    return "\n".join([f"-- {migration}", *scripts_of(migration), record])


def scripts_of(migration: Migration) -> list[str]:
    """Return what runs for a migration, before it is recorded."""
    return [load("ledger/create"), migration.sql, *_functions_with(migration)]


async def _index_waiting(connection: "asyncpg.Connection[Any]") -> str | None:
    done = None
    was_abandoned = False
    while True:
        found = await connection.fetchrow(load("tenant/is_waiting_indexed"))
        if found is not None and found["is_complete"]:
            return done
        is_abandoned = found is not None and not found["is_being_built"]
        # A session that builds the index reports completion before it commits: check twice.
        if found is not None and not (is_abandoned and was_abandoned):
            was_abandoned = is_abandoned
            await asyncio.sleep(LOCK_RETRY_DELAYS[0])
            continue
        # Another process may start at the same moment; one of them succeeds.
        with suppress(asyncpg.DuplicateTableError, asyncpg.DeadlockDetectedError):
            if found is not None:
                await connection.execute(load("tenant/drop_waiting_index"))
            await connection.execute(load("tenant/index_waiting"))
            done = "the index for max_pending_per_tenant is built"


@cache
def _names() -> dict[int, str]:
    return {migration.version: migration.name for migration in all_migrations()}


_NAMED = re.compile(r"(\d{4})_(\w+)\.sql")


def _read(filename: str, sql: str) -> Migration:
    named = _NAMED.fullmatch(filename)
    if named is None:
        raise ValueError(f"{filename} is not named like 0001_what.sql")
    return Migration(int(named[1]), named[2], sql)


async def _apply_when_free(
    connection: "asyncpg.Connection[Any]", migration: Migration, on_wait: Callable[[str], None]
) -> None:
    """Apply a migration with short lock timeouts and retries, so that claims are not blocked."""
    for pause in LOCK_RETRY_DELAYS:
        try:
            return await _apply(connection, migration)
        except asyncpg.LockNotAvailableError:
            on_wait(f"{migration} is waiting for a lock: {await _blockers(connection)}")
            await asyncio.sleep(pause)
    try:
        await _apply(connection, migration)
    except asyncpg.LockNotAvailableError as error:
        raise DatabaseUnavailable(
            f"{migration} did not get its locks in {len(LOCK_RETRY_DELAYS) + 1} attempts: "
            f"{await _blockers(connection)}; end that transaction, then run `forge migrate` again"
        ) from error


async def _blockers(connection: "asyncpg.Connection[Any]") -> str:
    found = await connection.fetch(load("ledger/blockers"))
    if not found:
        return "the session that held it has ended"
    return ", ".join(
        f"session {row['pid']} ({row['role']}, {row['application'] or 'no application name'}) is "
        f"{row['state']}, its transaction open for {row['seconds'] or 0:.0f} s"
        for row in found[:MAX_BLOCKERS_NAMED]
    )


async def _apply(connection: "asyncpg.Connection[Any]", migration: Migration) -> None:
    async with connection.transaction(isolation="read_committed"):
        await connection.fetchval(load("ledger/lock_briefly"), LOCK_TIMEOUT)
        for script in scripts_of(migration):
            await connection.execute(script)
        await connection.execute(load("ledger/record"), migration.version, migration.name)


def _functions_with(migration: Migration) -> list[str]:
    """Return what runs after a migration: functions that need every column run with the last."""
    is_last = migration.version == max(_names())
    return [load("functions/dispatch")] * is_last + [load("functions/protect")]


def check() -> Statement[None]:
    """Raise SchemaMissing unless the database has every migration that this version needs."""
    return Statement(load("ledger/applied"), (), _require_all)


def _require_all(found: Rows) -> None:
    reject_unreleased(found)
    if missing := _needed() - {row["version"] for row in found}:
        raise SchemaMissing(
            f"migration {min(missing)} is not applied to the database; run `forge migrate`"
        )


@cache
def _needed() -> frozenset[int]:
    return frozenset(migration.version for migration in all_migrations())
