"""Connections: how a firm reaches its mailboxes and calendars at a provider."""

from typing import Any, NamedTuple

from forge import NonRetryable

CONNECT = "insert into connections (tenant_id, url, token) values ($1, $2, $3) returning id"
OF_FIRM = "select id, url, token from connections where id = $1 and tenant_id = $2"


class Connection(NamedTuple):
    """A provider's address, and what lets us in there."""

    id: int
    url: str
    token: str

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}

    def __repr__(self) -> str:
        return f"<connection {self.id}>"  # its token is not for logs and traces


async def connect(db: Any, tenant_id: int, url: str, token: str) -> int:
    """Let a firm use a mailbox or a calendar; returns the id that payloads carry."""
    return int(await db.fetchval(CONNECT, tenant_id, url, token))


async def connection_of(db: Any, tenant_id: int | None, connection_id: int) -> Connection:
    """Find a connection of this firm: another firm's is none, whatever a payload says."""
    row = await db.fetchrow(OF_FIRM, connection_id, tenant_id)
    if row is None:
        raise NonRetryable(f"firm {tenant_id} has no connection {connection_id}; connect it first")
    return Connection(*row)
