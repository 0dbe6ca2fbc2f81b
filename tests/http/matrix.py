"""The access matrix: every route, every caller, every tenant's rows."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple
from uuid import UUID, uuid4

import httpx
from fastapi import FastAPI
from websockets.exceptions import InvalidStatus

from forge import Forge
from forge.http.auth.access import RequiredRole, Role
from forge.http.auth.permissions import RoutePermission, Tenancy
from forge.http.dashboard.files import assets
from forge.http.routes import required_role_of, walk
from tests.http.conftest import Headers, MakeToken
from tests.http.live_client import client
from tests.store.placing import registered

OWN, OTHER = 7, 8
# In everything that the first tenant has; no other tenant may see it.
CANARY = "canary-of-seven"
ROLES: tuple[tuple[str, ...], ...] = ((), ("user",), ("staff",), ("manager",), ("staff", "manager"))
# A viewer, alone and beside each other role.
VIEWERS: tuple[tuple[str, ...], ...] = (
    ("viewer",),
    ("viewer", "user"),
    ("viewer", "staff"),
    ("viewer", "staff", "manager"),
)
READING = ("GET", "WS")
SENDS: dict[str, Any] = {
    "dispatch": {"tenant_id": OWN, "args": {"text": CANARY}},
    "dispatch_many": {"tenant_id": OWN, "inputs": [{"text": CANARY}]},
    "mutations": {"text": "hello"},
    "actions": {"text": "hello"},
    "discard": {"notes": "not again"},
    "dlq": {"notes": "once more"},
    "reschedule": {"delay": "2h"},
    "reprioritise": {"priority": "low"},
    "move": {"queue": "bulk"},
}
# Bulk reviews select dead letters by a filter instead of an id.
SENDS_TO: dict[str, Any] = {
    "POST /api/jobs/admin/dlq/reprocess/": {"job_type": "send_mail", "notes": "once more"},
    "POST /_api/jobs/bulk": {"action": "cancel", "filter": {"type": "none"}, "reason": CANARY},
    "PATCH /_api/schedules/{schedule_id}": {"jitter": "1m"},
    "POST /api/jobs/admin/dlq/discard/": {"job_type": "send_mail", "notes": "not again"},
    "POST /_api/pauses": {"type": "report", "reason": CANARY},
}
BURY = """with letter as (
    insert into forge_dead_letters
        (job_id, job_type, queue, priority, tenant_id, payload, payload_version, error_message,
         attempt_count, original_created_at, original_scheduled_at)
    values (forge_uuidv7(), 'send_mail', 'mail', 50, $1, jsonb_build_object('text', $2::text),
            '1.0', $2, 1, now(), now())
    returning dlq_id
), audited as (
    insert into forge_audit_events (event, tenant_id, dlq_id, notes)
    select 'job_dlq_seen', $1, dlq_id, $2 from letter
)
select dlq_id from letter"""


class Caller(NamedTuple):
    """A caller with these roles and tenant, or with an invalid token."""

    label: str
    headers: Headers
    roles: frozenset[Role] | None
    tenant: int | None = None


def callers(token: MakeToken) -> list[Caller]:
    """Return all callers."""
    strangers = [
        Caller("no token", {}, None),
        Caller("a bad token", {"Authorization": "Bearer nonsense"}, None),
        Caller("a token for too long ago", token("user", "staff", "manager", lifetime=-5), None),
    ]
    tenants_of_roles = [(roles, tenant) for roles in ROLES for tenant in (OWN, OTHER, None)]
    tenants_of_roles += [(roles, OWN) for roles in VIEWERS] + [(("viewer",), OTHER)]
    return strangers + [
        Caller(
            f"{roles or 'no role'} of {tenant or 'all'}",
            headers,
            frozenset(map(Role, roles)),
            tenant,
        )
        for roles, tenant in tenants_of_roles
        if (headers := token(*roles, tenant=tenant))
    ]


def expected(route: str, right: RoutePermission, caller: Caller) -> int:
    """Return the status of the answer; 200 stands for every answer that is not a refusal."""
    is_reading = route.split()[0] in READING
    if right.required_role is None:
        return 200
    if caller.roles is None:
        return 401
    if not right.required_role.is_met_by(caller.roles):
        return 403
    if Role.VIEWER in caller.roles and not is_reading:
        return 403
    if caller.tenant is not None and right.tenancy is Tenancy.OPERATOR:
        return 403
    if caller.tenant == OTHER and right.tenancy is Tenancy.ROW:
        return 404
    if caller.tenant == OTHER and right.tenancy is Tenancy.BODY:
        return 403
    return 200


def routes(api: FastAPI) -> dict[str, RequiredRole | None]:
    """Return the routes of a server as the table names them."""
    found = {}
    for route in walk(api.routes):
        path = getattr(route, "path_format", None)
        methods = getattr(route, "methods", None) or {"WS"}
        for method in methods - {"HEAD"}:
            found[f"{method} {path}"] = required_role_of(route)
    return found


Target = Callable[[], Awaitable[UUID | int]]


class Asking:
    """Calls each route of a server with fresh rows of the first tenant."""

    def __init__(self, app: Forge, address: str, http: httpx.AsyncClient) -> None:
        self._app = app
        self._address = address
        self._http = http
        self._fill: dict[str, Target | str] = {
            "job_id": self.job,
            "schedule_id": self.schedule,
            "dlq_id": self.letter,
            "pause_id": self.pause,
            "worker_id": self.worker,
            "job_type": "send_mail",
            "asset": next(iter(assets())),
        }

    async def ask(self, route: str, caller: Caller) -> tuple[int, str]:
        """Return the status of the answer, 200 for any that is no refusal, and what it shows."""
        method, path = route.split()
        if method == "WS":
            return await self._ask_by_socket(caller)
        for name, target in self._fill.items():
            if f"{{{name}}}" in path:
                value = target if isinstance(target, str) else str(await target())
                path = path.replace(f"{{{name}}}", value)
        if "{name}" in path:
            path = path.replace("{name}", path.split("/")[2].removesuffix("s") + "_of_all")
        assert "{" not in path, f"{route}: teach tests/http/matrix.py what stands there"
        body = next((sent for part, sent in SENDS.items() if part in path.split("/")), None)
        body = SENDS_TO.get(route, body)
        # By another name, since callers on the same machine need less.
        headers = caller.headers | {"Host": "forge.test"}
        async with self._http.stream(method, path, headers=headers, json=body) as answer:
            is_endless = answer.headers.get("content-type", "").startswith("text/event-stream")
            shown = "" if is_endless else (await answer.aread()).decode()
        # A conflict with the state of the row: only a caller who may act learns of it.
        is_allowed = answer.status_code < 400 or answer.status_code == 409
        return 200 if is_allowed else answer.status_code, shown

    async def _ask_by_socket(self, caller: Caller) -> tuple[int, str]:
        job_id = await self.job()
        try:
            async with client(self._address, caller.headers) as live:
                await live.subscribe(job_id)
                message = await live.next()
        except InvalidStatus as refused:
            return refused.response.status_code, ""
        codes = {"unauthenticated": 401, "forbidden": 403, "not_found": 404}
        return codes[message["code"]] if message["type"] == "error" else 200, str(message)

    async def job(self) -> UUID:
        """Dispatch a job of the first tenant."""
        return (await self._app.dispatch("send_mail", {"text": CANARY}, tenant_id=OWN)).id

    async def schedule(self) -> UUID:
        """Make a schedule of the first tenant."""
        made = await self._app.schedules.ensure(
            "report", f"{CANARY} {uuid4()}", {"text": CANARY}, every="1h", tenant_id=OWN
        )
        return made.id

    async def worker(self) -> UUID:
        """Register a worker of no tenant."""
        return (await registered(await (await self._app.session()).database())).id

    async def pause(self) -> UUID:
        """Pause a type that no other row has."""
        return (await self._app.pause("report", reason=CANARY)).pause_id

    async def letter(self) -> int:
        """Create a dead letter of the first tenant, with an audit event."""
        database = await (await self._app.session()).database()
        async with database.acquire() as connection:
            return int(await connection.fetchval(BURY, OWN, CANARY))


@asynccontextmanager
async def asking(app: Forge, server: str | FastAPI) -> AsyncIterator[Asking]:
    """Ask a server for the time of the block: by its address, or without a network between."""
    transport = None if isinstance(server, str) else httpx.ASGITransport(server)
    address = server if isinstance(server, str) else "http://forge.test"
    async with httpx.AsyncClient(base_url=address, transport=transport, timeout=30) as http:
        yield Asking(app, address, http)
