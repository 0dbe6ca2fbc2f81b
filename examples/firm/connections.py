"""Connections of a firm to its mailboxes and calendars at a provider."""

from typing import Any, NamedTuple

from forge import NonRetryable

CONNECT = "insert into connections (tenant_id, url, token) values ($1, $2, $3) returning id"
OF_FIRM = "select id, url, token from connections where id = $1 and tenant_id = $2"


class Connection(NamedTuple):
    """The address of a provider and the token for it."""

    id: int
    url: str
    token: str

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}

    def __repr__(self) -> str:
        return f"<connection {self.id}>"  # keep the token out of logs and tracebacks


async def connect(db: Any, tenant_id: int, url: str, token: str) -> int:
    """Add a connection to a mailbox or a calendar. Returns the id for use in payloads."""
    return int(await db.fetchval(CONNECT, tenant_id, url, token))


async def connection_of(db: Any, tenant_id: int | None, connection_id: int) -> Connection:
    """Return a connection of this firm. Connections of other firms are not found."""
    row = await db.fetchrow(OF_FIRM, connection_id, tenant_id)
    if row is None:
        raise NonRetryable(f"Firm {tenant_id} has no connection {connection_id}. Connect it first.")
    return Connection(*row)
