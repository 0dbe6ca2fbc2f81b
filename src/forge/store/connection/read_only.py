"""Whether the database accepts writes, as seen by Forge's and the handlers' connections."""

import asyncio
from typing import TYPE_CHECKING, Any

from forge.core.errors import DatabaseUnavailable
from forge.store.connection.driver_errors import DRIVER_ERRORS, read_only
from forge.store.connection.link import Link
from forge.store.statement import Rows, Statement, load

if TYPE_CHECKING:
    import asyncpg

POOL_TIMEOUT = 5.0


async def is_read_only(link: Link, pool: "asyncpg.Pool[Any]") -> bool:
    """Check the server of a link and the server of a pool: after a failover they may differ.

    A server that does not answer counts as read-only, because a failover may be in progress.
    """
    try:
        if await link.run(_check()):
            return True
    except DatabaseUnavailable:
        return True
    return await _is_pool_read_only(pool)


async def _is_pool_read_only(pool: "asyncpg.Pool[Any]") -> bool:
    try:
        async with asyncio.timeout(POOL_TIMEOUT), pool.acquire() as connection:
            found = bool(await connection.fetchval(load("transaction/is_read_only")))
    except DRIVER_ERRORS:
        return False  # for example because all are in use: rely on the link's answer
    if found:
        await pool.expire_connections()  # new connections find the new primary
    return found


def require_writable() -> Statement[None]:
    """Raise DatabaseUnavailable if the server accepts no writes."""
    return Statement(load("transaction/is_read_only"), (), _refuse_read_only)


def _refuse_read_only(found: Rows) -> None:
    if found[0]["is_read_only"]:
        raise read_only()


def _check() -> Statement[bool]:
    return Statement(
        load("transaction/is_read_only"), (), lambda found: bool(found[0]["is_read_only"])
    )
