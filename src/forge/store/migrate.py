"""Migrations: numbered SQL files, each applied once, in order, by one process at a time."""

import asyncio
import re
from collections.abc import Callable
from contextlib import suppress
from importlib.resources import files
from typing import Any, NamedTuple

import asyncpg

from forge.core.errors import DatabaseUnavailable, SchemaMissing
from forge.store.database import Database
from forge.store.fault import DRIVER_ERRORS, translated
from forge.store.link import close_quietly
from forge.store.statement import load

LOCK = 0x466F726765  # "Forge": whoever migrates holds this advisory lock

# How long a migration waits for a lock: claims queue behind it meanwhile.
LOCK_TIMEOUT = "1s"
# Seconds between its tries, about two minutes in all.
PAUSES = (0.5, 1.0, 2.0, *[5.0] * 24)
# Sessions that are named as holding the lock.
MOST_NAMED = 3


class Migration(NamedTuple):
    """One step of the schema."""

    version: int
    name: str
    sql: str

    def __str__(self) -> str:
        return f"{self.version:04}_{self.name}"


def all_migrations() -> list[Migration]:
    """Return every migration, the first one first."""
    folder = files("forge").joinpath("sql", "migrations")
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return [_read(name, folder.joinpath(name).read_text(encoding="utf-8")) for name in names]


async def migrate(
    database: Database, on_wait: Callable[[str], None] = lambda reason: None
) -> list[Migration]:
    """Apply what is missing and return it; safe to call from many processes at once.

    `on_wait` receives the reason whenever a migration has to wait for the lock of another session.
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
    """Build the index for `[server] max_pending_per_tenant` unless it is there; say what was done.

    On a connection of its own: it takes as long as it takes, and cannot be part of a transaction.
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
    """Return the migrations that this database still lacks."""
    known = await connection.fetchval(load("ledger/is_known"))
    applied = set()
    if known:
        applied = {row["version"] for row in await connection.fetch(load("ledger/applied"))}
    migrations = all_migrations()
    if unknown := applied - {migration.version for migration in migrations}:
        raise SchemaMissing(
            f"the database has migration {max(unknown)}, which this version of Forge does not "
            "know; upgrade forge-jobs here"
        )
    return [migration for migration in migrations if migration.version not in applied]


def as_sql() -> str:
    """Return all migrations as one script for people with a migration tool of their own."""
    parts = [load("ledger/create")]
    for migration in all_migrations():
        record = load("ledger/record")
        record = record.replace("$1", str(migration.version)).replace("$2", f"'{migration.name}'")
        parts.append(f"-- {migration}\n{migration.sql}\n{load('functions/protect')}\n{record}")
    return "\n".join(parts)


async def _index_waiting(connection: "asyncpg.Connection[Any]") -> str | None:
    done = None
    was_abandoned = False
    while True:
        found = await connection.fetchrow(load("tenant/is_waiting_indexed"))
        if found is not None and found["is_complete"]:
            return done
        is_abandoned = found is not None and not found["is_being_built"]
        # A session that builds it reports its end before its commit: one look is not enough.
        if found is not None and not (is_abandoned and was_abandoned):
            was_abandoned = is_abandoned
            await asyncio.sleep(PAUSES[0])
            continue
        # Another process may begin at the same moment; one of them goes on.
        with suppress(asyncpg.DuplicateTableError, asyncpg.DeadlockDetectedError):
            if found is not None:
                await connection.execute(load("tenant/drop_waiting_index"))
            await connection.execute(load("tenant/index_waiting"))
            done = "the index for max_pending_per_tenant is built"


_NAMED = re.compile(r"(\d{4})_(\w+)\.sql")


def _read(filename: str, sql: str) -> Migration:
    named = _NAMED.fullmatch(filename)
    if named is None:
        raise ValueError(f"{filename} is not named like 0001_what.sql")
    return Migration(int(named[1]), named[2], sql)


async def _apply_when_free(
    connection: "asyncpg.Connection[Any]", migration: Migration, on_wait: Callable[[str], None]
) -> None:
    """Apply a migration without making claims queue behind it: try for short, and again."""
    for pause in PAUSES:
        try:
            return await _apply(connection, migration)
        except asyncpg.LockNotAvailableError:
            on_wait(f"{migration} waits for a lock: {await _blockers(connection)}")
            await asyncio.sleep(pause)
    try:
        await _apply(connection, migration)
    except asyncpg.LockNotAvailableError as error:
        raise DatabaseUnavailable(
            f"{migration} did not get its locks in {len(PAUSES) + 1} tries: "
            f"{await _blockers(connection)}; end that transaction, then run `forge migrate` again"
        ) from error


async def _blockers(connection: "asyncpg.Connection[Any]") -> str:
    found = await connection.fetch(load("ledger/blockers"))
    if not found:
        return "the session that held it has ended"
    return ", ".join(
        f"session {row['pid']} ({row['role']}, {row['application'] or 'no application name'}) is "
        f"{row['state']}, its transaction open for {row['seconds'] or 0:.0f} s"
        for row in found[:MOST_NAMED]
    )


async def _apply(connection: "asyncpg.Connection[Any]", migration: Migration) -> None:
    async with connection.transaction(isolation="read_committed"):
        await connection.fetchval(load("ledger/lock_briefly"), LOCK_TIMEOUT)
        await connection.execute(load("ledger/create"))
        await connection.execute(migration.sql)
        await connection.execute(load("functions/protect"))
        await connection.execute(load("ledger/record"), migration.version, migration.name)
