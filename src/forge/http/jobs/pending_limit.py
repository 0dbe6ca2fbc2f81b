"""How many jobs of one tenant may wait: `[server] max_pending_per_tenant`."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import TYPE_CHECKING

from fastapi import Request

from forge.http.problems.problem import Problem
from forge.store import jobs

if TYPE_CHECKING:
    from forge.http.auth.access import Caller

# For so long a count serves: a tenant costs the database one count a second at most.
FRESH = 1.0
# Tenants that are remembered before those without anything under way are forgotten.
MAX_TENANTS = 10_000


def admitted(
    request: Request, caller: "Caller", tenant_id: int | None, count: int
) -> AbstractAsyncContextManager[None]:
    """Reserve room for jobs of a tenant while they are written, if there is a limit."""
    limit: PendingLimit | None = request.app.state.pending_limit
    return _UNLIMITED if limit is None else limit.admitted(caller, tenant_id, count)


_UNLIMITED: AbstractAsyncContextManager[None] = nullcontext()


class PendingLimit:
    """Admits dispatches of a tenant while it has room, by a count that is at most a second old.

    What this server admits is exact: between two counts it gives away no more than the room that
    the last one found, less what was still being written then. What others add to the queue in
    the meantime (other servers, Python, SQL, retries) is seen by the next count.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._tenants: dict[int, _Tenant] = {}

    @asynccontextmanager
    async def admitted(
        self, caller: "Caller", tenant_id: int | None, wanted: int
    ) -> AsyncIterator[None]:
        """Hold room for some jobs while they are written, or raise a 429."""
        if tenant_id is None or wanted == 0:
            yield
            return
        tenant = self._tenant(tenant_id)
        async with tenant.counting:
            if time.monotonic() - tenant.counted_at >= FRESH:
                await self._count(caller, tenant_id, tenant)
            if wanted > tenant.room:
                raise self._full(wanted)
            tenant.room -= wanted
            tenant.writing += wanted
        try:
            yield
        finally:
            tenant.writing -= wanted

    async def _count(self, caller: "Caller", tenant_id: int, tenant: "_Tenant") -> None:
        # Jobs being written may be in the count or not: to count them twice refuses a little early
        # and never admits too many.
        writing = tenant.writing
        waiting = await caller.run(jobs.count_waiting(tenant_id, self._most))
        tenant.room = self._most - waiting - writing
        tenant.counted_at = time.monotonic()

    def _tenant(self, tenant_id: int) -> "_Tenant":
        if tenant_id not in self._tenants and len(self._tenants) >= MAX_TENANTS:
            self._tenants = {key: found for key, found in self._tenants.items() if found.is_used()}
        return self._tenants.setdefault(tenant_id, _Tenant())

    def _full(self, wanted: int) -> Problem:
        detail = f"the tenant has {self._most} waiting jobs or nearly, as many as it may"
        if wanted > self._most:
            detail = f"{wanted} jobs are more than the {self._most} that may wait for one tenant"
        return Problem(
            "too_many",
            f"{detail} ([server] max_pending_per_tenant); try again when some are done, or with "
            "fewer",
            headers={"Retry-After": "1"},
        )


class _Tenant:
    """What is left of one tenant's room since the last count."""

    def __init__(self) -> None:
        self.counting = asyncio.Lock()
        self.counted_at = float("-inf")
        self.room = 0
        self.writing = 0

    def is_used(self) -> bool:
        return self.writing > 0 or self.counting.locked()
