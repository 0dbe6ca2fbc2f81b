"""Statements on connections for which row security holds.

There the planner trusts no equation about a function of columns, so that it does not see that the
jobs of one lane come from their index in order, and sorts the whole lane instead. What stands in a
statement as /* secured: … */ then says the order in full; everybody else is spared the work.
"""

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from forge.store.statement import Statement, load

if TYPE_CHECKING:
    import asyncpg

BEGIN, END = "/* secured: ", " */"


@lru_cache(maxsize=1000)
def secured_text(sql: str) -> str | None:
    """Return a statement with what is meant for secured connections; None where nothing is."""
    before, mark, rest = sql.partition(BEGIN)
    if not mark:
        return None
    part, _, after = rest.partition(END)
    return before + part + (secured_text(after) or after)


async def is_secured(connection: "asyncpg.Connection[Any]", timeout: float) -> bool:
    """Ask whether row security holds for whoever is connected."""
    return bool(await connection.fetchval(load("jobs/copy_terms"), timeout=timeout))


def as_secured(statement: Statement[Any]) -> Statement[Any]:
    return replace(statement, sql=secured_text(statement.sql) or statement.sql)
