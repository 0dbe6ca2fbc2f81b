"""What a mutation or an action receives: the caller, the database, and a way to dispatch."""

from typing import TYPE_CHECKING, Any, NamedTuple, overload
from uuid import UUID

from forge.core.context import Auth, Context
from forge.core.errors import InvalidValue
from forge.core.new_job import DispatchOptions, check_dict, check_tenant, parse_uuid
from forge.core.signals import Rejected
from forge.definitions.job import In, Out
from forge.jobs.dispatch import Dispatcher
from forge.jobs.handle import JobHandle
from forge.store.borrowed import run_on
from forge.store.connection.tenant import Callers, act_in_transaction

if TYPE_CHECKING:
    import httpx
    from typing_extensions import Unpack

    from forge.definitions.job import JobDefinition
    from forge.store.connection.database import Connection, Pool


class CallIdentity(NamedTuple):
    """The caller of a mutation or an action."""

    auth: Auth | None = None
    tenant_id: int | None = None
    correlation_id: UUID | None = None
    # The W3C trace context that came with the call.
    traceparent: str | None = None

    @classmethod
    def of(
        cls, auth: dict[str, Any] | None, tenant_id: int | None, correlation_id: UUID | str | None
    ) -> "CallIdentity":
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
    """The caller, and the jobs that it may dispatch."""

    __slots__ = ("_dispatcher", "_who")

    def __init__(self, dispatcher: Dispatcher, who: CallIdentity) -> None:
        self._dispatcher = dispatcher
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

    def _on_behalf(self, options: DispatchOptions) -> DispatchOptions:
        """Add the caller to the options, and refuse a tenant that is not the caller's."""
        auth, tenant_id, correlation_id, _ = self._who
        asked = options.get("tenant_id", tenant_id)
        if tenant_id is not None and asked != tenant_id:
            raise Rejected(
                f"the caller is bound to tenant {tenant_id} and cannot dispatch for {asked}; leave "
                "tenant_id out, or call as an operator",
                status=403,
            )
        caller: DispatchOptions = {}
        if asked is not None:
            caller["tenant_id"] = asked
        if auth is not None:
            caller["auth"] = auth
        if correlation_id is not None:
            caller["correlation_id"] = correlation_id
        return {**caller, **options}


class MutationContext(CallContext):
    """A call inside one transaction."""

    __slots__ = ("_conn", "dispatched")

    def __init__(self, dispatcher: Dispatcher, who: CallIdentity, conn: "Connection[Any]") -> None:
        super().__init__(dispatcher, who)
        self._conn = conn
        # How many new jobs the commit makes visible.
        self.dispatched = 0

    @property
    def db(self) -> "Connection[Any]":
        """The connection whose transaction commits when the handler returns."""
        return self._conn

    @overload
    async def dispatch_job(
        self,
        job: "JobDefinition[In, Out]",
        input: In | dict[str, Any] | None = None,
        **options: "Unpack[DispatchOptions]",
    ) -> JobHandle[Out]: ...
    @overload
    async def dispatch_job(
        self, job: str, input: Any = None, **options: "Unpack[DispatchOptions]"
    ) -> JobHandle[Any]: ...
    async def dispatch_job(
        self,
        job: "JobDefinition[Any, Any] | str",
        input: Any = None,
        **options: "Unpack[DispatchOptions]",
    ) -> JobHandle[Any]:
        """Dispatch one job, which exists if and only if the mutation commits."""
        made = await self._dispatcher.dispatch_on(
            self._conn, job, input, self._on_behalf(options), trace=self._who.traceparent
        )
        self.dispatched += made.is_new
        return self._dispatcher.handle(made, job)


class ActionContext(CallContext):
    """A call without a transaction."""

    __slots__ = ("_callers", "_http", "_pool")

    def __init__(
        self,
        dispatcher: Dispatcher,
        who: CallIdentity,
        pool: "Pool[Any]",
        http: "httpx.AsyncClient",
        callers: Callers,
    ) -> None:
        super().__init__(dispatcher, who)
        self._pool = pool
        self._http = http
        self._callers = callers

    @property
    def db(self) -> "Pool[Any]":
        """A connection pool: `async with ctx.db.acquire() as conn`."""
        return self._pool

    async def act_for_caller(self, conn: "Connection[Any]") -> None:
        """Act for the caller until the end of the connection's transaction, as a mutation does.

        Without it a connection of this pool that logs in as forge_api sees none of Forge's rows.
        """
        caller = self._callers.bound(self._who.tenant_id, self._who.auth)
        await run_on(conn, act_in_transaction(caller))

    @property
    def http(self) -> "httpx.AsyncClient":
        """An HTTP client that all actions of the process share."""
        return self._http

    @overload
    async def dispatch_job(
        self,
        job: "JobDefinition[In, Out]",
        input: In | dict[str, Any] | None = None,
        **options: "Unpack[DispatchOptions]",
    ) -> JobHandle[Out]: ...
    @overload
    async def dispatch_job(
        self, job: str, input: Any = None, **options: "Unpack[DispatchOptions]"
    ) -> JobHandle[Any]: ...
    async def dispatch_job(
        self,
        job: "JobDefinition[Any, Any] | str",
        input: Any = None,
        **options: "Unpack[DispatchOptions]",
    ) -> JobHandle[Any]:
        """Dispatch one job, committed at once: it runs even if the action fails afterwards."""
        return await self._dispatcher.dispatch(
            job, input, self._on_behalf(options), trace=self._who.traceparent
        )
