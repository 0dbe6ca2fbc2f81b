"""The rights that `forge migrate --roles` grants, read from its script."""

import re
from typing import NamedTuple

from forge.store.roles import roles_as_sql
from forge.store.statement import Row


class Right(NamedTuple):
    """One privilege of a role on a table, a column, a sequence or a function."""

    role: str
    object: str
    column: str | None
    privilege: str


def granted_rights() -> frozenset[Right]:
    """Return what the script grants on Forge's tables, sequences and functions."""
    script = _BLOCK.sub("", _COMMENT.sub("", roles_as_sql()))
    return frozenset(right for grant in _GRANT.finditer(script) for right in _rights(grant))


def is_granted(right: Right, granted: frozenset[Right]) -> bool:
    """Say whether a right is among those granted, by itself or for the whole table."""
    return right in granted or right._replace(column=None) in granted


def held(row: Row, role: str) -> Right:
    """Read a row of `doctor/rights_held` as a right of a role."""
    return Right(role, row["object"], row["column"], row["privilege"])


_COMMENT = re.compile(r"--.*")
_BLOCK = re.compile(r"do \$\$.*?\$\$;", re.DOTALL)
_GRANT = re.compile(
    r"grant\s+(?P<privileges>[^;]+?)\s+on\s+(?:sequence\s+|function\s+)?(?P<objects>[\w\s,]+?)"
    r"\s+to\s+(?P<roles>[\w\s,]+?)\s*;"
)
_PRIVILEGE = re.compile(r"(\w+)\s*(?:\(([^)]*)\))?")


def _rights(grant: re.Match[str]) -> list[Right]:
    return [
        Right(role, name, column, privilege.upper())
        for privilege, columns in _PRIVILEGE.findall(grant["privileges"])
        for column in _names(columns) or (None,)
        for name in _names(grant["objects"])
        for role in _names(grant["roles"])
    ]


def _names(listed: str) -> list[str]:
    return re.findall(r"\w+", listed)
