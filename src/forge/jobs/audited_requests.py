"""Requests on many rows: each is a built-in job and one audit event, which commit together."""

from functools import partial
from typing import Any, NamedTuple

from pydantic import BaseModel

from forge.core.new_job import DispatchOptions
from forge.definitions.catalog import Catalog
from forge.definitions.job import JobDefinition
from forge.jobs.dispatch import Dispatcher
from forge.jobs.handle import JobHandle
from forge.jobs.prepare import prepare
from forge.jobs.session import Sessions
from forge.store import audit
from forge.store.borrowed import run_on


class AuditEntry(NamedTuple):
    """What the audit log says of a request, beside who made it."""

    event: str
    reason: str | None
    # JSON.
    detail: str


class AuditedRequests:
    """Dispatches requests that a worker carries out."""

    def __init__(self, sessions: Sessions, catalog: Catalog, dispatcher: Dispatcher) -> None:
        self._sessions = sessions
        self._catalog = catalog
        self._dispatcher = dispatcher

    async def dispatch(
        self,
        job: JobDefinition[Any, Any],
        wanted: BaseModel,
        options: DispatchOptions,
        entry: AuditEntry,
    ) -> JobHandle[Any]:
        """Dispatch a request with its audit event.

        `options` has the auth of the caller, and the tenant if it is limited to one.
        """
        encoder = await self._catalog.find(job)
        prepared = prepare(encoder, wanted.model_dump(mode="json"), options)
        actor, tenant = options.get("auth", {}).get("actor"), options.get("tenant_id")
        session = self._sessions.here()
        async with (await session.database()).transaction(tenant) as connection:
            run = partial(run_on, connection)
            (made,) = await run(prepared.statement())
            event, reason, detail = entry
            await run(audit.add(event, actor, tenant, made.id, reason, detail))
        session.wake(is_request=True)
        return self._dispatcher.handle(made, job)
