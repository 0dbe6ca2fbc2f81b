"""The roles forge_api and forge_worker, and the rights that `forge migrate --roles` grants."""

import asyncio
import re
from contextlib import suppress
from importlib.resources import files
from typing import Any, NamedTuple

import asyncpg

from forge.core.errors import DatabaseUnavailable, StatementRefused
from forge.store.connection.database import Database
from forge.store.connection.tenant import pads
from forge.store.migrate import LOCK, LOCK_RETRY_DELAYS, LOCK_TIMEOUT
from forge.store.statement import Row, load

API_ROLE = "forge_api"
ROLES = (API_ROLE, "forge_worker")


class Grant(NamedTuple):
    """One privilege of a role on a table, a column, a sequence or a function."""

    role: str
    object: str
    column: str | None
    privilege: str


async def grant_roles(database: Database) -> None:
    """Create forge_api and forge_worker if they are missing, and grant them their rights.

    If `database` signs callers, the server requires callers signed with its key from then on.
    """
    connection = await database.connect(planned=False)
    try:
        await _grant_when_free(connection, database.callers.key)
    except asyncpg.InsufficientPrivilegeError as error:
        raise StatementRefused(
            f"{error}; run `forge migrate --roles` as the owner of Forge's tables, with the right "
            "to create roles, or have an administrator run the script that `forge migrate --roles "
            "--sql` prints"
        ) from error
    except _LOCKED as error:
        raise DatabaseUnavailable(
            f"the roles did not get the locks of the tables in {len(LOCK_RETRY_DELAYS) + 1} "
            "attempts; end the transactions that hold them, then run `forge migrate --roles` again"
        ) from error
    finally:
        await connection.close()


# A policy locks its table; workers lock the same tables in other orders.
_LOCKED = (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError)


async def _grant_when_free(connection: "asyncpg.Connection[Any]", key: bytes | None) -> None:
    """Grant with short lock timeouts and retries, so that claims are not blocked."""
    for pause in LOCK_RETRY_DELAYS:
        with suppress(*_LOCKED):
            await _grant(connection, key)
            return
        await asyncio.sleep(pause)
    await _grant(connection, key)


async def _grant(connection: "asyncpg.Connection[Any]", key: bytes | None) -> None:
    async with connection.transaction():
        await connection.fetchval(load("ledger/lock_briefly"), LOCK_TIMEOUT)
        # Concurrent grants on one table would fail.
        await connection.execute(load("ledger/lock_in_transaction"), LOCK)
        await connection.execute(roles_as_sql())
        if key is not None:
            await connection.execute(load("tenant/register_key"), *pads(key))


def roles_as_sql() -> str:
    """Return the roles and their rights as one script that can be run repeatedly."""
    folder = files("forge").joinpath("sql", "roles")
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return "\n".join(folder.joinpath(name).read_text(encoding="utf-8") for name in names)


def granted_rights() -> frozenset[Grant]:
    """Return the rights that the script grants on Forge's tables, sequences and functions."""
    script = _BLOCK.sub("", _COMMENT.sub("", roles_as_sql()))
    return frozenset(right for grant in _GRANT.finditer(script) for right in _rights(grant))


def is_granted(right: Grant, granted: frozenset[Grant]) -> bool:
    """Whether a right was granted, on the column or on the whole table."""
    return right in granted or right._replace(column=None) in granted


def held(row: Row, role: str) -> Grant:
    """Return the right of a role in a row of `doctor/rights_held`."""
    return Grant(role, row["object"], row["column"], row["privilege"])


_COMMENT = re.compile(r"--.*|/\*.*?\*/")
_BLOCK = re.compile(r"do \$\$.*?\$\$;", re.DOTALL)
_GRANT = re.compile(
    r"grant\s+(?P<privileges>[^;]+?)\s+on\s+(?:sequence\s+|function\s+)?(?P<objects>[\w\s,]+?)"
    r"\s+to\s+(?P<roles>[\w\s,]+?)\s*;"
)
_PRIVILEGE = re.compile(r"(\w+)\s*(?:\(([^)]*)\))?")


def _rights(grant: re.Match[str]) -> list[Grant]:
    return [
        Grant(role, name, column, privilege.upper())
        for privilege, columns in _PRIVILEGE.findall(grant["privileges"])
        for column in _names(columns) or (None,)
        for name in _names(grant["objects"])
        for role in _names(grant["roles"])
    ]


def _names(listed: str) -> list[str]:
    return re.findall(r"\w+", listed)
