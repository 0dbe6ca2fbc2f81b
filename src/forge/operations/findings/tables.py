"""Checks of Forge's tables: bloat, retention, disabled triggers, and what blocks vacuum."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from forge.config.settings import RetentionConfig
from forge.core.duration import format_duration
from forge.core.finding import Finding, ok, problem, warning
from forge.store import doctor
from forge.store.connection.database import Database

# Seconds after which an open transaction counts as forgotten.
OLD_TRANSACTION = 300.0
MANY_DEAD_ROWS = 50_000
# Seconds by which a job may exceed its retention: workers prune every minute.
MAX_RETENTION_OVERRUN = 600.0


async def check_tables(database: Database, retention: RetentionConfig) -> list[Finding]:
    """Check the tables, their triggers and indexes, their history and their dead rows."""
    return [
        *await _tables(database),
        await _history(database, retention),
        *await _parts(database),
        *await _snapshots(database),
    ]


async def _tables(database: Database) -> list[Finding]:
    findings: list[Finding] = []
    for table in await database.run(doctor.tables()):
        name = table["name"]
        if table["is_unlogged"]:
            advice = f"alter table {name} set logged"
            findings.append(
                problem(
                    "unlogged_table",
                    f"{name} is unlogged: a crash of PostgreSQL empties it",
                    advice,
                    table=name,
                )
            )
        if table["is_never_vacuumed"]:
            advice = f"alter table {name} reset (autovacuum_enabled)"
            what = f"{name} has autovacuum disabled"
            findings.append(problem("autovacuum_off", what, advice, table=name))
        if name == "forge_jobs":
            findings.append(_bloat(table))
    return findings


def _bloat(table: Any) -> Finding:
    ago = table["vacuumed_ago"]
    facts = {name: table[name] for name in ("live", "dead", "bytes")}
    vacuumed = "never vacuumed" if ago is None else f"vacuumed {ago / 60:.0f} min ago"
    message = (
        f"forge_jobs: {table['live']} live and {table['dead']} dead rows, "
        f"{table['bytes'] / 2**20:.0f} MB, {vacuumed}"
    )
    if table["dead"] > max(MANY_DEAD_ROWS, table["live"]):
        return warning("bloat", message, "end old transactions, then vacuum forge_jobs", **facts)
    return ok("tables", message, **facts)


async def _history(database: Database, retention: RetentionConfig) -> Finding:
    keep = [
        None if time is None else time.total_seconds()
        for time in (retention.completed, retention.failed)
    ]
    overdue = await database.run(doctor.overdue(*keep))
    if overdue <= MAX_RETENTION_OVERRUN:
        return ok("retention", "no job exceeds its retention by much")
    late = format_duration(timedelta(seconds=round(overdue)))
    return warning(
        "overdue_retention",
        f"jobs exceed their retention by {late}",
        "start a worker with these [retention] settings: workers prune every minute",
        seconds=round(overdue),
    )


async def _parts(database: Database) -> list[Finding]:
    return [
        problem(
            f"disabled_{part['kind']}",
            f"the {part['kind']} {part['name']} is disabled",
            _REPAIRS[part["kind"]](part),
            name=part["name"],
            table=part["table"],
        )
        for part in await database.run(doctor.broken_parts())
    ]


_REPAIRS: dict[str, Callable[[Any], str]] = {
    "trigger": lambda part: f"alter table {part['table']} enable trigger {part['name']}",
    "index": lambda part: f"reindex index {part['name']}",
}


async def _snapshots(database: Database) -> list[Finding]:
    found = await database.run(doctor.old_snapshots(OLD_TRANSACTION))
    if not found:
        return [ok("snapshots", "no old transaction prevents vacuum")]
    return [
        warning("old_snapshot", *_old(row), kind=row["kind"], id=row["id"], seconds=row["seconds"])
        for row in found
    ]


def _old(row: Any) -> tuple[str, str]:
    match row["kind"]:
        case "session":
            state = f"{row['state']} for {row['seconds']:.0f} s"
            what = f"session {row['id']} ({row['name']}) has been {state}"
            return what, f"terminate it: select pg_terminate_backend({row['id']})"
        case "prepared":
            return f"prepared transaction {row['id']} is open", f"rollback prepared '{row['id']}'"
    what = f"replication slot {row['name']} ({row['state']}) holds back {row['transactions']}"
    return what, "let its consumer catch up, or drop it with pg_drop_replication_slot"
