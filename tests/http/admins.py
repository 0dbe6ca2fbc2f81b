"""Managers that review dead letters over HTTP."""

from typing import Any

import httpx

MANAGER = ("staff", "manager")
DLQ = "/api/jobs/admin/dlq/"


class Admin:
    """A manager of one tenant, or of all."""

    def __init__(self, http: httpx.AsyncClient, headers: dict[str, str]) -> None:
        self._http = http
        self._headers = headers

    async def get(self, path: str = "", **asked: Any) -> httpx.Response:
        return await self._http.get(f"{DLQ}{path}", params=asked, headers=self._headers)

    async def post(self, path: str, body: Any = None) -> httpx.Response:
        return await self._http.post(f"{DLQ}{path}", json=body, headers=self._headers)


async def events(psql: Any) -> list[tuple[Any, ...]]:
    """Return the audit events, oldest first."""
    found = await psql.fetch(
        "select event, actor, notes, tenant_id from forge_audit_events order by id"
    )
    return [tuple(row) for row in found]
