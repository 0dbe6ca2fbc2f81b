"""The schema that the migrations create, as pg_dump prints it: all of it, and the tables alone."""

import asyncio
import re
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import NamedTuple

from forge.store.connection.database import Database
from forge.store.embedded import Binaries, Cluster
from forge.store.migrate import all_migrations, migrate
from forge.store.statement import load

SCHEMA_HEADER = """\
-- Generated from sql/migrations by `make format`: the whole schema, in reading order rather than
-- in the order that would create it. tables.sql has the tables alone.
"""
TABLES_HEADER = """\
-- Generated from sql/migrations by `make format`: the tables alone. schema.sql has the rest.
"""
READING_ORDER = (
    "forge_jobs",
    "forge_attempts",
    "forge_attempt_logs",
    "forge_idempotency_keys",
    "forge_dead_letters",
    "forge_dead_letter_counts",
    "forge_schedules",
    "forge_statistics",
    "forge_tenant_statistics",
    "forge_workers",
    "forge_job_types",
    "forge_schedule_types",
    "forge_pauses",
    "forge_outbox",
    "forge_audit_events",
    "forge_signing_keys",
    "forge_migrations",
)
# The types of pg_dump's entries in reading order; the others follow.
TYPE_ORDER = ("TABLE", "SEQUENCE", "CONSTRAINT", "INDEX", "FUNCTION", "TRIGGER")
WIDTH = 120


class Entry(NamedTuple):
    """One object in the output of pg_dump."""

    name: str
    type: str
    sql: str


def schema_sql() -> str:
    """Return every object, tables first."""
    return "\n\n".join([SCHEMA_HEADER.strip(), *(entry.sql for entry in _entries())]) + "\n"


def tables_sql() -> str:
    """Return the tables with their columns, keys, checks and comments."""
    comments = _comments("\n".join([load("ledger/create"), *(m.sql for m in all_migrations())]))
    tables = [_table(entry, comments) for entry in _entries() if entry.type == "TABLE"]
    return "\n\n".join([TABLES_HEADER.strip(), *tables]) + "\n"


@cache
def _entries() -> list[Entry]:
    """Apply the migrations to an empty database and dump it, in reading order."""
    with tempfile.TemporaryDirectory(prefix="forge-schema-") as folder:
        binaries = Binaries.from_wheel()
        cluster = Cluster(Path(folder) / "postgres", binaries, {"fsync": "off"})
        cluster.init()
        cluster.start()
        try:
            asyncio.run(_migrate(cluster.url()))
            dump = subprocess.run(
                [str(binaries.folder / "pg_dump"), "--schema-only", "--no-owner", cluster.url()],
                check=True,
                capture_output=True,
                text=True,
            )
        finally:
            cluster.stop("immediate")
    return sorted(_split(dump.stdout), key=_place)


async def _migrate(url: str) -> None:
    database = Database(url)
    await migrate(database)
    await database.close()


_TITLE = re.compile(r"^-- Name: (.+?); Type: (.+?); Schema: .*$", re.M)
# Lines about the session that would load the dump.
_NOISE = re.compile(r"^(--|SET |SELECT pg_catalog\.set_config|\\).*\n?", re.M)


def _split(dump: str) -> list[Entry]:
    _, *parts = _TITLE.split(dump)
    named = zip(parts[::3], parts[1::3], parts[2::3], strict=True)
    return [Entry(name, type_, _NOISE.sub("", sql).strip()) for name, type_, sql in named]


def _place(entry: Entry) -> tuple[int, int]:
    """Return the place of an entry in reading order."""
    types, tables = (*TYPE_ORDER, entry.type), (*READING_ORDER, entry.name)
    return types.index(entry.type), tables.index(entry.name) if entry.type == "TABLE" else 0


def _table(entry: Entry, comments: dict[str, str]) -> str:
    """Return one CREATE TABLE statement, shortened."""
    table = entry.name
    body = entry.sql.partition("(\n")[2].rpartition("\n)")[0]
    lines = [line.strip().removesuffix(",") for line in body.split("\n")]
    inline, constraints = _keys(table)
    columns = [_short(line) for line in lines if not line.startswith("CONSTRAINT ")]
    columns = [_keyed(column, inline.get(column.split()[0], "")) for column in columns]
    checks = [_check(line) for line in lines if line.startswith("CONSTRAINT ")]

    written = [*columns, *constraints, *checks]
    written = [f"    {line}," for line in written[:-1]] + [f"    {written[-1]}"]
    noted = [_noted(line, comments.get(f"{table}.{line.split()[0]}")) for line in written]
    about = comments[table].partition(". ")[0].removesuffix(".")
    return "\n".join([f"-- {about}.", f"create table {table} (", *noted, ");"])


def _keys(table: str) -> tuple[dict[str, str], list[str]]:
    """Return the keys of single columns by column, and those of several columns as constraints."""
    inline: dict[str, str] = {}
    constraints = []
    for entry in _entries():
        if entry.type == "CONSTRAINT" and entry.name.startswith(f"{table} "):
            name = entry.name.split()[1]
            key, columns = re.findall(r"ADD CONSTRAINT \w+ (.+?) \((.+)\);", entry.sql)[0]
            default = f"{table}_pkey" if key == "PRIMARY KEY" else f"{table}_{columns}_key"
            key = key.lower() if name == default else f"constraint {name} {key.lower()}"
            if "," in columns:
                constraints.append(f"{key} ({columns})")
            else:
                inline[columns] = inline.get(columns, "") + f" {key}"
        elif entry.type == "SEQUENCE" and f"ALTER TABLE public.{table} " in entry.sql:
            column = re.findall(r"ALTER COLUMN (\w+) ADD GENERATED ALWAYS", entry.sql)[0]
            inline[column] = " generated always as identity" + inline.get(column, "")
    return inline, constraints


def _keyed(column: str, key: str) -> str:
    if key.endswith(" primary key"):
        name, type_, *rest = column.replace(" not null", "").split()
        return " ".join([f"{name} {type_}{key}", *rest])
    return column + key


def _short(sql: str) -> str:
    """Write a part of a CREATE TABLE statement as a person would."""
    sql = sql.replace("public.", "").replace("character varying", "varchar")
    sql = sql.replace("timestamp with time zone", "timestamptz")
    sql = re.sub(r"('[^']*')::[a-z]+(\[\])?", r"\1", sql)  # 'default'::varchar
    sql = re.sub(r"DEFAULT (.+) NOT NULL$", r"NOT NULL DEFAULT \1", sql)
    return re.sub(r"'[^']*'|[A-Z]+", lambda found: _lower(found[0]), sql)


def _lower(word: str) -> str:
    return word if word.startswith("'") else word.lower()


def _check(sql: str) -> str:
    """Write a check as in `check (status in ('a', 'b'))`."""
    sql = re.sub(r"::text(\[\])?", "", _short(sql))
    sql = re.sub(r"\((\w+)\)", r"\1", sql)  # (status)
    sql = re.sub(r"= any \((\()?array\[(.+?)\](?(1)\))\)", r"in (\2)", sql)
    return re.sub(r" check \(\((.*)\)\)$", r" check (\1)", sql)


def _noted(line: str, comment: str | None) -> str:
    """Put a comment after a line, or before it where it does not fit."""
    if comment is None:
        return line
    after = f"{line}  -- {comment}"
    return after if len(after) <= WIDTH else f"    -- {comment}\n{line}"


def _comments(script: str) -> dict[str, str]:
    """Return the comments on tables and on columns (`table.column`) in a script."""
    found: dict[str, str] = {}
    above: list[str] = []
    table = ""
    for line in map(str.strip, script.splitlines()):
        if line.startswith("--"):
            above.append(line.removeprefix("--").strip())
            continue
        if begun := re.match(r"(create|alter) table (?:if not exists )?(\w+)", line):
            table = begun[2]
            if begun[1] == "create":
                found[table] = " ".join(above)
        elif table and above and (column := re.match(r"(?:add column )?(\w+) ", line)):
            found[f"{table}.{column[1]}"] = " ".join(above)
        if line.startswith(")") or line.endswith(";"):
            table = ""
        above = []
    return found
