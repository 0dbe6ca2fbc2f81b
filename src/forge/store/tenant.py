"""For whom a connection acts: where row security holds, it sees that caller's rows alone."""

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from forge.core.payload import decode, encode
from forge.core.signed_caller import RENEW_AFTER, derive_key, sign
from forge.store.statement import Row, Statement, load, nothing, only

if TYPE_CHECKING:
    import asyncpg

SETTING = "forge.tenant_id"


class Callers:
    """Writes callers as the database reads them, signed where there is a secret."""

    def __init__(self, secret: str | None = None) -> None:
        self.key = None if secret is None else derive_key(secret)
        # After how many seconds a session that acts for a caller has to say so again.
        self.renew_after = float("inf") if self.key is None else RENEW_AFTER

    def tenant(self, tenant: int | None) -> str:
        """Return the caller of Forge's own statements: a tenant, or an operator for None."""
        return sign({"tenant_id": tenant}, self.key, time.time())

    def bound(self, tenant: int | None, auth: Mapping[str, Any] | None) -> str:
        """Return the caller of somebody else's SQL: it writes in the name of this auth alone."""
        # As the jobs that it dispatches write it, since the database compares the two.
        written = None if auth is None else decode(encode(dict(auth), what="auth"))
        return sign({"tenant_id": tenant, "auth": written}, self.key, time.time())


def act(caller: str) -> Statement[None]:
    """Act for a caller until the session's next one."""
    return Statement(load("tenant/act"), (caller,), nothing)


def act_in_transaction(caller: str) -> Statement[None]:
    """Act for a caller until the transaction ends."""
    return Statement(load("tenant/act_in_transaction"), (caller,), nothing)


def take_role(role: str, *, in_transaction: bool) -> Statement[bool]:
    """Take a role where it exists and the login may; say whether it was taken."""
    return Statement(load("tenant/take_role"), (role, in_transaction), bool)


def standing() -> Statement[Row]:
    """Ask whether this login has to name a caller, and whether callers have to be signed."""
    return Statement(load("tenant/standing"), (), only)


def is_operator() -> Statement[bool]:
    """Ask whether the session sees every tenant's rows; refused where its caller is not valid."""
    return Statement(load("tenant/is_operator"), (), lambda found: bool(only(found)["is_operator"]))


async def execute(
    connection: "asyncpg.Connection[Any]", statement: Statement[Any], timeout: float | None = None
) -> None:
    """Run one of these statements on a connection of Forge's own."""
    await connection.execute(statement.sql, *statement.args, timeout=timeout)
