"""Roles: who may wish for jobs, and who may move them."""

from importlib.resources import files

import asyncpg

from forge.core.errors import StatementRefused
from forge.core.signed_caller import pads
from forge.store.database import Database
from forge.store.migrate import LOCK
from forge.store.statement import load

API_ROLE = "forge_api"
ROLES = (API_ROLE, "forge_worker")


async def grant_roles(database: Database) -> None:
    """Create forge_api and forge_worker where they are missing, and give them their rights.

    Where `database` signs callers, they have to be signed with its key from then on.
    """
    key = database.callers.key
    connection = await database.connect(planned=False)
    try:
        async with connection.transaction():
            # Two who grant on one table at once would fail each other.
            await connection.execute(load("ledger/lock_in_transaction"), LOCK)
            await connection.execute(roles_as_sql())
            if key is not None:
                await connection.execute(load("tenant/register_key"), *pads(key))
    except asyncpg.InsufficientPrivilegeError as error:
        raise StatementRefused(
            f"{error}; run `forge migrate --roles` as the owner of Forge's tables, with the right "
            "to create roles, or let somebody who has it run `forge migrate --roles --sql`"
        ) from error
    finally:
        await connection.close()


def roles_as_sql() -> str:
    """Return the roles and their rights as one script, which may be run any number of times."""
    folder = files("forge").joinpath("sql", "roles")
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return "\n".join(folder.joinpath(name).read_text(encoding="utf-8") for name in names)
