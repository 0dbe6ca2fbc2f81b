"""Whether the database accepts writes, as seen by the connections that a handler may have used."""

import asyncio
from typing import TYPE_CHECKING, Any

from forge.core.errors import DatabaseUnavailable
from forge.store.fault import DRIVER_ERRORS, read_only
from forge.store.link import Link
from forge.store.statement import Rows, Statement, load

if TYPE_CHECKING:
    import asyncpg

PATIENCE = 5.0


async def is_read_only(link: Link, pool: "asyncpg.Pool[Any]") -> bool:
    """Ask the server behind a link, and the one behind a pool: after a failover they may differ.

    A server that does not answer counts as read-only: it is about to be replaced.
    """
    try:
        if await link.run(_question()):
            return True
    except DatabaseUnavailable:
        return True
    return await _leads_to_read_only(pool)


async def _leads_to_read_only(pool: "asyncpg.Pool[Any]") -> bool:
    try:
        async with asyncio.timeout(PATIENCE), pool.acquire() as connection:
            found = bool(await connection.fetchval(load("transaction/is_read_only")))
    except DRIVER_ERRORS:
        return False  # all are in use, for example: the link's answer stands
    if found:
        await pool.expire_connections()  # those opened from now on find the new primary
    return found


def require_writable() -> Statement[None]:
    """Raise DatabaseUnavailable where the server accepts no writes."""
    return Statement(load("transaction/is_read_only"), (), _refuse_read_only)


def _refuse_read_only(found: Rows) -> None:
    if found[0]["is_read_only"]:
        raise read_only()


def _question() -> Statement[bool]:
    return Statement(
        load("transaction/is_read_only"), (), lambda found: bool(found[0]["is_read_only"])
    )
