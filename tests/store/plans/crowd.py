"""Tables with many rows, and the plans of statements as the server really ran them."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import asyncpg

from forge.store.connection.database import Database
from forge.store.statement import Statement
from tests.store.placing import Psql

# As a person would fill the table: in moves that the lifecycle allows.
FILL = """insert into forge_jobs (job_type, priority, scheduled_at)
select $1, 50, now() + make_interval(secs => $3) + n * interval '1 microsecond'
from generate_series(1, $2::int) as n"""
CLAIM = """update forge_jobs
set status = 'running', worker_id = $2, lease = 1, attempts = 1, claimed_at = now()
where job_type = $1"""
COMPLETE = "update forge_jobs set status = 'completed', completed_at = now() where job_type = $1"


# How tables may be before there is anything in them: a planner takes one that was never tidied for
# larger than one that is known to be empty.
EMPTY = ["never tidied", "tidied"]


class Plan(NamedTuple):
    """What a statement did."""

    nodes: list[tuple[str, str | None]]
    buffers: int

    def ways_to(self, table: str) -> set[str]:
        """Return the kinds of scans by which a table was read."""
        return {kind for kind, read in self.nodes if read == table and kind.endswith("Scan")}


async def planned(connection: "asyncpg.Connection[Any]", statement: Statement[Any]) -> Plan:
    """Run a statement, take it back, and return its plan: the one it had, not one like it."""
    messages: list[str] = []

    def hear(_: Any, message: Any) -> None:
        messages.append(message.message)

    connection.add_log_listener(hear)
    attempt = connection.transaction()
    await attempt.start()
    try:
        await connection.fetch(statement.sql, *statement.args)
    finally:
        await attempt.rollback()
        connection.remove_log_listener(hear)
    plans = [json.loads(text.partition("plan:")[2]) for text in messages if "plan:" in text]
    (root,) = [
        plan["Plan"] for plan in plans if statement.sql.strip() in plan["Query Text"].strip()
    ]
    return Plan(list(_nodes(root)), root["Shared Hit Blocks"] + root["Shared Read Blocks"])


async def cost_of(connection: "asyncpg.Connection[Any]", statement: Statement[Any]) -> int:
    """Return how many buffers a statement takes once the caches are warm."""
    await planned(connection, statement)
    return (await planned(connection, statement)).buffers


async def plans_of(
    connection: "asyncpg.Connection[Any]", statements: Mapping[str, Statement[Any]]
) -> dict[str, Plan]:
    """Return the plan of each statement."""
    return {name: await planned(connection, each) for name, each in statements.items()}


async def costs_of(
    connection: "asyncpg.Connection[Any]", statements: Mapping[str, Statement[Any]]
) -> dict[str, int]:
    """Return the cost of each statement."""
    return {name: await cost_of(connection, each) for name, each in statements.items()}


def assert_flat(few: Mapping[str, int], many: Mapping[str, int]) -> None:
    """Compare the costs of statements among few rows with those among twenty times as many."""
    # A larger index may be a level higher, for each of its lookups.
    grown = {name: (few[name], many[name]) for name in few if many[name] > few[name] * 1.5 + 10}
    assert grown == {}, grown
    assert all(few.values())
    assert all(many.values())


async def explaining(database: Database) -> "asyncpg.Connection[Any]":
    """Open one of Forge's own connections that records the plan of each statement."""
    connection = await database.connect()
    for setting in (
        "load 'auto_explain'",
        "set auto_explain.log_min_duration = 0",
        "set auto_explain.log_analyze = on",
        "set auto_explain.log_buffers = on",
        "set auto_explain.log_format = 'json'",
        "set client_min_messages = log",
    ):
        await connection.execute(setting)
    return connection


async def fill(psql: "Psql[Any]", job_type: str, count: int, *, due_in: float = 0) -> None:
    """Add pending jobs."""
    await psql.execute(FILL, job_type, count, float(due_in))


async def run(psql: "Psql[Any]", job_type: str, worker: Any) -> None:
    """Have a worker run all jobs of a type."""
    await psql.execute(CLAIM, job_type, worker)


async def complete(psql: "Psql[Any]", job_type: str, worker: Any) -> None:
    """Complete all jobs of a type, and tidy up as autovacuum would."""
    await run(psql, job_type, worker)
    await psql.execute(COMPLETE, job_type)
    await psql.execute("vacuum forge_jobs")


def _nodes(plan: dict[str, Any]) -> Any:
    yield plan["Node Type"], plan.get("Relation Name")
    for inner in plan.get("Plans", ()):
        yield from _nodes(inner)
