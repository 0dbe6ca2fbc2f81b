"""The index of each tenant's waiting jobs, which is there only for the limit that needs it."""

from forge.store.database import Database
from forge.store.statement import Rows, Statement, load, nothing


async def index_waiting(database: Database) -> str | None:
    """Build the index unless it is there; say what was done. Only the owner of the tables may."""
    is_valid = await database.run(_is_valid())
    if is_valid:
        return None
    if is_valid is False:
        await database.run(Statement(load("tenant/drop_waiting_index"), (), nothing))
    await database.run(Statement(load("tenant/index_waiting"), (), nothing))
    return "the index for max_pending_per_tenant is built"


def _is_valid() -> Statement[bool | None]:
    """Whether the index can be used; None where there is none."""
    return Statement(load("tenant/is_waiting_indexed"), (), _first)


def _first(found: Rows) -> bool | None:
    return found[0]["indisvalid"] if found else None
