"""Row security: the caller a session acts for, and statements as secured sessions run them."""

import hmac
import json
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

from forge.core.payload import decode, encode
from forge.store.statement import Row, Statement, load, nothing, only

if TYPE_CHECKING:
    import asyncpg

# How long a signed caller is accepted, in seconds. Longer sessions sign again after half of it, so
# that the clocks of the application and the database may differ by the other half.
LIFETIME = 600
RENEW_AFTER = LIFETIME / 2

_PURPOSE = b"forge.tenant_id 1"
_BLOCK = 64
_UNSIGNED = "0" * 64
_NEVER = 999_999_999_999


class PaddedKey(NamedTuple):
    """A key padded for the two hashes of HMAC, as the database stores it."""

    inner: bytes
    outer: bytes


def derive_key(secret: str) -> bytes:
    """Return the key that signs callers; it reveals nothing about the secret."""
    return hmac.digest(secret.encode(), _PURPOSE, sha256)


def pads(key: bytes) -> PaddedKey:
    """Return a key padded for the inner and the outer hash."""
    padded = key.ljust(_BLOCK, b"\0")
    return PaddedKey(bytes(byte ^ 0x36 for byte in padded), bytes(byte ^ 0x5C for byte in padded))


def sign(caller: Mapping[str, Any], key: bytes | None, now: float) -> str:
    """Return the value of forge.tenant_id for a caller; without a key it is not signed."""
    expiry = _NEVER if key is None else int(now) + LIFETIME
    # ASCII, so that the encoding of a borrowed connection does not matter.
    body = f"{expiry}.{json.dumps(caller, separators=(',', ':'))}"
    return f"{_UNSIGNED if key is None else hmac.digest(key, body.encode(), sha256).hex()}.{body}"


SETTING = "forge.tenant_id"
# Text between these markers in a .sql file applies only to sessions under row security.
SECURED_BEGIN, SECURED_END = "/* secured: ", " */"


class Callers:
    """Writes callers in the form the database reads, signed if there is a secret."""

    def __init__(self, secret: str | None = None) -> None:
        self.key = None if secret is None else derive_key(secret)
        # Seconds after which a session has to set its signed caller again.
        self.renew_after = float("inf") if self.key is None else RENEW_AFTER

    def tenant(self, tenant: int | None) -> str:
        """Return the caller of Forge's own statements: a tenant, or an operator for None."""
        return sign({"tenant_id": tenant}, self.key, time.time())

    def bound(self, tenant: int | None, auth: Mapping[str, Any] | None) -> str:
        """Return the caller of user code's SQL: it writes only in the name of this auth."""
        # Encoded as in the jobs it dispatches, because the database compares the two.
        written = None if auth is None else decode(encode(dict(auth), what="auth"))
        return sign({"tenant_id": tenant, "auth": written}, self.key, time.time())


def act(caller: str) -> Statement[None]:
    """Act for a caller until the session sets another one."""
    return Statement(load("tenant/act"), (caller,), nothing)


def act_in_transaction(caller: str) -> Statement[None]:
    """Act for a caller until the transaction ends."""
    return Statement(load("tenant/act_in_transaction"), (caller,), nothing)


def take_role(role: str, *, in_transaction: bool) -> Statement[bool]:
    """Switch to a role if it exists and the login is a member; return whether it switched."""
    return Statement(load("tenant/take_role"), (role, in_transaction), bool)


def standing() -> Statement[Row]:
    """Read whether this login must name a caller, and whether callers must be signed."""
    return Statement(load("tenant/standing"), (), only)


def is_operator() -> Statement[bool]:
    """Read whether the session sees every tenant's rows; fails if its caller is not valid."""
    return Statement(load("tenant/is_operator"), (), lambda found: bool(only(found)["is_operator"]))


async def execute(
    connection: "asyncpg.Connection[Any]", statement: Statement[Any], timeout: float | None = None
) -> None:
    """Run one of these statements on one of Forge's own connections."""
    await connection.execute(statement.sql, *statement.args, timeout=timeout)


async def is_secured(connection: "asyncpg.Connection[Any]", timeout: float) -> bool:
    """Read whether row security applies to the connected role."""
    return bool(await connection.fetchval(load("jobs/copy_terms"), timeout=timeout))


@lru_cache(maxsize=1000)
def secured_text(sql: str) -> str | None:
    """Return the statement for secured sessions; None if it is the same for all sessions.

    Under row security the planner does not use that the jobs of one lane come from their index in
    order, and sorts the whole lane. The marked parts spell out the order for it; other sessions do
    without them because they cost time.
    """
    before, mark, rest = sql.partition(SECURED_BEGIN)
    if not mark:
        return None
    part, _, after = rest.partition(SECURED_END)
    return before + part + (secured_text(after) or after)


def as_secured(statement: Statement[Any]) -> Statement[Any]:
    return replace(statement, sql=secured_text(statement.sql) or statement.sql)
