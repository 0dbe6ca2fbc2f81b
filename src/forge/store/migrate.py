"""Migrations: numbered SQL files, each applied once, in order, by one process at a time."""

import re
from importlib.resources import files
from typing import Any, NamedTuple

import asyncpg

from forge.core.errors import SchemaMissing
from forge.store.database import Database
from forge.store.fault import DRIVER_ERRORS, translated
from forge.store.link import close_quietly
from forge.store.statement import load

LOCK = 0x466F726765  # "Forge": whoever migrates holds this advisory lock


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


async def migrate(database: Database) -> list[Migration]:
    """Apply what is missing and return it; safe to call from many processes at once."""
    try:
        connection = await database.connect(planned=False)
        try:
            await connection.execute(load("ledger/lock"), LOCK)
            missing = await pending(connection)
            for migration in missing:
                await _apply(connection, migration)
            return missing
        finally:
            await close_quietly(connection)
    except DRIVER_ERRORS as error:
        raise translated(error) from error


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


_NAMED = re.compile(r"(\d{4})_(\w+)\.sql")


def _read(filename: str, sql: str) -> Migration:
    named = _NAMED.fullmatch(filename)
    if named is None:
        raise ValueError(f"{filename} is not named like 0001_what.sql")
    return Migration(int(named[1]), named[2], sql)


async def _apply(connection: "asyncpg.Connection[Any]", migration: Migration) -> None:
    async with connection.transaction(isolation="read_committed"):
        await connection.execute(load("ledger/create"))
        await connection.execute(migration.sql)
        await connection.execute(load("functions/protect"))
        await connection.execute(load("ledger/record"), migration.version, migration.name)
