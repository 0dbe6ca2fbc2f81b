"""For whom a connection acts: row security shows it that tenant's rows alone, where it holds."""

from typing import TYPE_CHECKING, Any

from forge.store.statement import load

if TYPE_CHECKING:
    import asyncpg


async def become(
    connection: "asyncpg.Connection[Any]", tenant: int | None, timeout: float | None = None
) -> None:
    """Act for a tenant until told otherwise; None for whom the connection was opened."""
    if tenant is None:
        await connection.execute(load("tenant/leave"), timeout=timeout)
    else:
        await connection.execute(load("tenant/become"), tenant, timeout=timeout)


async def become_in_transaction(
    connection: "asyncpg.Connection[Any]", tenant: int | None, timeout: float | None = None
) -> None:
    """Act for a tenant until the transaction ends; for None nothing changes."""
    if tenant is not None:
        await connection.execute(load("tenant/become_in_transaction"), tenant, timeout=timeout)
