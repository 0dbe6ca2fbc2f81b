"""What mutations and actions are given: who calls, the database, and a way to dispatch."""

from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

from forge.core.auth import Auth
from forge.core.context import Context
from forge.core.errors import InvalidValue
from forge.core.signals import Rejected
from forge.core.wish import Options, check_dict, check_tenant, parse_uuid
from forge.handle import JobHandle
from forge.registry import In
from forge.store.borrowed import run_on
from forge.store.tenant import act_in_transaction
from forge.telemetry.trace_source import traceparent_for

if TYPE_CHECKING:
    import httpx
    from typing_extensions import Unpack

    from forge.app import Forge
    from forge.registry import JobDefinition
    from forge.store.database import Connection, Pool


class Who(NamedTuple):
    """On whose behalf a call is made."""

    auth: Auth | None = None
    tenant_id: int | None = None
    correlation_id: UUID | None = None
    # The W3C trace context that came with the call.
    traceparent: str | None = None

    @classmethod
    def of(
        cls, auth: dict[str, Any] | None, tenant_id: int | None, correlation_id: UUID | str | None
    ) -> "Who":
        """Check who calls; the tenant is that of their auth unless it says none."""
        who = None if auth is None else Auth(check_dict(auth, "auth"))
        bound = check_tenant(who.tenant_id) if who is not None else None
        asked = check_tenant(tenant_id)
        if bound is not None and asked not in (None, bound):
            raise InvalidValue(
                f"auth is bound to tenant {bound}, and tenant_id is {asked}; leave tenant_id out"
            )
        return cls(
            who, asked if bound is None else bound, parse_uuid(correlation_id, "correlation_id")
        )


class CallContext(Context):
    """Who calls, and what they may ask for."""

    __slots__ = ("_app", "_who")

    def __init__(self, app: "Forge", who: Who) -> None:
        self._app = app
        self._who = who

    @property
    def auth(self) -> Auth:
        """Who calls; `is_system` where Python named no caller."""
        return Auth() if self._who.auth is None else self._who.auth

    @property
    def tenant_id(self) -> int | None:
        """The tenant on whose behalf the call is made; None for an operator."""
        return self._who.tenant_id

    @property
    def correlation_id(self) -> UUID | None:
        """The id that ties the call and its jobs to other things, if it has one."""
        return self._who.correlation_id

    def _on_behalf(self, job: "JobDefinition[Any, Any] | str", options: Options) -> Options:
        """Return the options with who calls in them; nobody dispatches for another's tenant."""
        auth, tenant_id, correlation_id, sent = self._who
        asked = options.get("tenant_id", tenant_id)
        if tenant_id is not None and asked != tenant_id:
            raise Rejected(
                f"the caller is bound to tenant {tenant_id} and cannot dispatch for {asked}; leave "
                "tenant_id out, or call as an operator",
                status=403,
            )
        told: Options = {}
        if asked is not None:
            told["tenant_id"] = asked
        if auth is not None:
            told["auth"] = auth
        if correlation_id is not None:
            told["correlation_id"] = correlation_id
        if "traceparent" not in options:
            name = job if isinstance(job, str) else job.name
            if (trace := traceparent_for(name, sent)) is not None:
                told["traceparent"] = trace
        return {**told, **options}


class MutationContext(CallContext):
    """A call inside one transaction."""

    __slots__ = ("_conn", "dispatched")

    def __init__(self, app: "Forge", who: Who, conn: "Connection[Any]") -> None:
        super().__init__(app, who)
        self._conn = conn
        # How many jobs the commit will bring.
        self.dispatched = 0

    @property
    def db(self) -> "Connection[Any]":
        """The connection whose transaction commits when the handler returns."""
        return self._conn

    async def dispatch_job(
        self,
        job: "JobDefinition[In, Any] | str",
        input: In | dict[str, Any] | None = None,
        **options: "Unpack[Options]",
    ) -> JobHandle:
        """Ask for one call of a job, which exists if and only if the mutation commits."""
        told = self._on_behalf(job, options)
        made = await self._app._one_on(self._conn, job, input, told, False)
        self.dispatched += made.is_new
        return JobHandle(self._app, made.id, deduplicated=not made.is_new)


class ActionContext(CallContext):
    """A call without a transaction."""

    __slots__ = ("_http", "_pool")

    def __init__(
        self, app: "Forge", who: Who, pool: "Pool[Any]", http: "httpx.AsyncClient"
    ) -> None:
        super().__init__(app, who)
        self._pool = pool
        self._http = http

    @property
    def db(self) -> "Pool[Any]":
        """A connection pool: `async with ctx.db.acquire() as conn`."""
        return self._pool

    async def act_for_caller(self, conn: "Connection[Any]") -> None:
        """Act for the caller until the end of the connection's transaction, as a mutation does.

        Without it a connection of this pool that logs in as forge_api sees none of Forge's rows.
        """
        caller = self._app._callers().bound(self._who.tenant_id, self._who.auth)
        await run_on(conn, act_in_transaction(caller))

    @property
    def http(self) -> "httpx.AsyncClient":
        """An HTTP client that all actions of the process share."""
        return self._http

    async def dispatch_job(
        self,
        job: "JobDefinition[In, Any] | str",
        input: In | dict[str, Any] | None = None,
        **options: "Unpack[Options]",
    ) -> JobHandle:
        """Ask for one call of a job, at once and for good."""
        return await self._app.dispatch(job, input, **self._on_behalf(job, options))
