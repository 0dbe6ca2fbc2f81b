"""The users of the two firms and the roles of their tokens."""

import secrets
from hashlib import sha256
from typing import Any, NamedTuple

LAWYERS, ACCOUNTANTS = 1, 2


class Person(NamedTuple):
    """A user with a token."""

    name: str
    tenant_id: int
    roles: tuple[str, ...]
    token: str


def create_person(name: str, tenant_id: int, *roles: str) -> Person:
    """Create a user with a new random token."""
    return Person(name, tenant_id, roles, secrets.token_urlsafe(32))


ANN = create_person("ann", LAWYERS, "user")
MAX = create_person("max", LAWYERS, "staff", "manager")
BEA = create_person("bea", ACCOUNTANTS, "user")
TOM = create_person("tom", ACCOUNTANTS, "staff", "manager")


def tokens() -> list[dict[str, Any]]:
    """Return the entries for [[auth.tokens]] in forge.toml: hashes, never the tokens."""
    return [
        {
            "name": person.name,
            "sha256": sha256(person.token.encode()).hexdigest(),
            "roles": person.roles,
            "tenant_id": person.tenant_id,
        }
        for person in (ANN, MAX, BEA, TOM)
    ]
