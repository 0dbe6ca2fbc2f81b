"""The roles forge_api and forge_worker, and the rights that `forge migrate --roles` grants."""

import re
from importlib.resources import files
from typing import NamedTuple

import asyncpg

from forge.core.errors import StatementRefused
from forge.store.connection.database import Database
from forge.store.connection.tenant import pads
from forge.store.migrate import LOCK
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
    key = database.callers.key
    connection = await database.connect(planned=False)
    try:
        async with connection.transaction():
            # Concurrent grants on one table would fail.
            await connection.execute(load("ledger/lock_in_transaction"), LOCK)
            await connection.execute(roles_as_sql())
            if key is not None:
                await connection.execute(load("tenant/register_key"), *pads(key))
    except asyncpg.InsufficientPrivilegeError as error:
        raise StatementRefused(
            f"{error}; run `forge migrate --roles` as the owner of Forge's tables, with the right "
            "to create roles, or have an administrator run the script that `forge migrate --roles "
            "--sql` prints"
        ) from error
    finally:
        await connection.close()


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
