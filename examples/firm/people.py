"""Who works at the two firms, and what their tokens allow."""

import secrets
from hashlib import sha256
from typing import Any, NamedTuple

LAWYERS, ACCOUNTANTS = 1, 2


class Person(NamedTuple):
    """Somebody with a token of their own."""

    name: str
    tenant_id: int
    roles: tuple[str, ...]
    token: str


def employ(name: str, tenant_id: int, *roles: str) -> Person:
    """Give somebody a token, made anew for each run."""
    return Person(name, tenant_id, roles, secrets.token_urlsafe(32))


ANN = employ("ann", LAWYERS, "user")
MAX = employ("max", LAWYERS, "staff", "manager")
BEA = employ("bea", ACCOUNTANTS, "user")
TOM = employ("tom", ACCOUNTANTS, "staff", "manager")


def tokens() -> list[dict[str, Any]]:
    """Return what stands as [[auth.tokens]] in forge.toml elsewhere: hashes, never the tokens."""
    return [
        {
            "name": person.name,
            "sha256": sha256(person.token.encode()).hexdigest(),
            "roles": person.roles,
            "tenant_id": person.tenant_id,
        }
        for person in (ANN, MAX, BEA, TOM)
    ]
