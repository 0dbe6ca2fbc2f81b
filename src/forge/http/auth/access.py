"""Access control: dependencies that check the caller's role and return the caller."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from fastapi import Depends
from starlette.requests import HTTPConnection

from forge.http.auth.request_source import is_local, is_own_page, is_plain_local_json
from forge.http.problems.problem import Problem

if TYPE_CHECKING:
    from forge.app import Forge
    from forge.http.auth.authenticator import Authenticator
    from forge.store.statement import Statement


# The methods that change nothing. A WebSocket has none of them: it only follows jobs.
READING = frozenset({"GET", "HEAD", "OPTIONS", "WS"})


class Role(StrEnum):
    """A role of a token; `manager` counts only together with `staff`.

    `viewer` restricts: whatever other roles the token has, it only reads what they read.
    """

    VIEWER = "viewer"
    USER = "user"
    STAFF = "staff"
    MANAGER = "manager"


@dataclass(frozen=True, slots=True)
class Identity:
    """The holder of a token."""

    name: str
    roles: frozenset[Role]
    # None is an operator, who can access every tenant's rows.
    tenant_id: int | None = None
    # Expiry of the token in seconds since the epoch; None is never.
    expires_at: float | None = None
    # The key or static token that authenticated the caller: revoking it ends open streams.
    key: str | None = field(default=None, compare=False, repr=False)

    @property
    def is_viewer(self) -> bool:
        """Whether the caller may only read."""
        return Role.VIEWER in self.roles

    def as_auth(self) -> dict[str, Any]:
        """Return the `auth` of jobs that this caller dispatches."""
        return {
            "name": self.name,
            "roles": sorted(self.roles),
            "tenant_id": self.tenant_id,
        }


class RequiredRole(StrEnum):
    """The role that a route requires."""

    USER = "user"
    STAFF = "staff"
    MANAGER = "manager"

    def is_met_by(self, roles: frozenset[Role]) -> bool:
        match self:
            case RequiredRole.USER:
                return bool(roles & {Role.VIEWER, Role.USER, Role.STAFF})
            case RequiredRole.STAFF:
                return Role.STAFF in roles
            case RequiredRole.MANAGER:
                return roles >= {Role.STAFF, Role.MANAGER}

    def check(self, identity: Identity) -> None:
        """Raise a 403 unless the caller has the role."""
        if not self.is_met_by(identity.roles):
            raise Problem("forbidden", self._missing(identity.roles))

    def _missing(self, roles: frozenset[Role]) -> str:
        """Name every role that the token lacks: managers also need staff."""
        required = ["staff", "manager"] if self is RequiredRole.MANAGER else [str(self)]
        missing = [role for role in required if role not in roles]
        if len(missing) == 1:
            return f"this route requires the role {missing[0]}; use a token that has it"
        return f"this route requires the roles {' and '.join(missing)}; use a token that has both"


T = TypeVar("T")
# A program on the developer's own machine that sends no token.
DEVELOPER = Identity("developer", frozenset({Role.USER}))


@dataclass(frozen=True, slots=True)
class Caller:
    """An authenticated caller, and the database with the caller's row security."""

    identity: Identity
    app: "Forge"

    @property
    def tenant_id(self) -> int | None:
        """The caller's tenant; None for an operator, who can access all tenants."""
        return self.identity.tenant_id

    def tenant_for(self, requested: int | None) -> int | None:
        """Return the tenant of a request: operators may name any, others only their own."""
        if self.tenant_id is None:
            return requested
        if requested not in (None, self.tenant_id):
            raise Problem("forbidden", "tenant_id differs from the token's; leave it out")
        return self.tenant_id

    async def run(self, statement: "Statement[T]") -> T:
        """Run one statement that sees only the caller's rows."""
        database = await (await self.app.session()).database()
        return await database.run(statement, self.identity.tenant_id)

    async def run_over_all(self, statement: "Statement[T]") -> T:
        """Run one statement over all tenants' rows; show the caller aggregates at most."""
        database = await (await self.app.session()).database()
        return await database.run(statement)


@dataclass(frozen=True, slots=True)
class AccessCheck:
    """A dependency that checks the caller; `required_role` is documented for its routes."""

    required_role: RequiredRole

    def check(self, connection: HTTPConnection, identity: Identity, method: str) -> None:
        """Raise a 403 unless the caller may call a route with this check by this method."""
        self.required_role.check(identity)
        if method in READING:
            return
        if connection.app.state.forge.config.server.read_only:
            raise Problem(
                "read_only",
                "the server is read-only ([server] read_only); use a server that is not",
            )
        if identity.is_viewer:
            raise Problem(
                "forbidden", "the role viewer may only read; use a token without this role"
            )


@dataclass(frozen=True, slots=True)
class RequireRole(AccessCheck):
    """Allows callers with the role."""

    async def __call__(self, connection: HTTPConnection) -> Caller:
        identity = await identity_of(connection)
        self.check(connection, identity, connection.scope.get("method", "WS"))
        return Caller(identity, connection.app.state.forge)


@dataclass(frozen=True, slots=True)
class RequireOperator(RequireRole):
    """Allows callers with the role who are operators: the route affects every tenant."""

    def check(self, connection: HTTPConnection, identity: Identity, method: str) -> None:
        AccessCheck.check(self, connection, identity, method)
        if identity.tenant_id is not None:
            raise Problem(
                "forbidden",
                "this route affects every tenant; use an operator's token, which has no tenant",
            )


@dataclass(frozen=True, slots=True)
class RequireRoleOrLoopback(AccessCheck):
    """Allows callers with the role, and any caller on loopback."""

    def check(self, connection: HTTPConnection, identity: Identity, method: str) -> None:
        if not is_local(connection):
            AccessCheck.check(self, connection, identity, method)

    async def __call__(self, connection: HTTPConnection) -> None:
        if not is_local(connection):
            await RequireRole(self.required_role)(connection)


async def identity_of(connection: HTTPConnection) -> Identity:
    """Return the caller, or raise a 401; a 403 for a page of another site with a session here."""
    state = connection.app.state
    has_token = "authorization" in connection.headers
    if not has_token and state.is_development and is_plain_local_json(connection):
        return DEVELOPER
    authenticator: Authenticator = state.authenticator
    identity = await authenticator.identify_request(connection)
    # Browsers send cookies on their own, so that any page could act for the caller.
    if not has_token and not is_own_page(
        connection.headers, state.forge.config.server.allowed_origins
    ):
        raise Problem(
            "forbidden",
            "the request comes from a page of another site; send a token, or add its origin to "
            "[server] allowed_origins",
        )
    return identity


User = Annotated[Caller, Depends(RequireRole(RequiredRole.USER))]
Staff = Annotated[Caller, Depends(RequireRole(RequiredRole.STAFF))]
Manager = Annotated[Caller, Depends(RequireRole(RequiredRole.MANAGER))]
OperatingStaff = Annotated[Caller, Depends(RequireOperator(RequiredRole.STAFF))]
OperatingManager = Annotated[Caller, Depends(RequireOperator(RequiredRole.MANAGER))]
LocalOrStaff = Annotated[None, Depends(RequireRoleOrLoopback(RequiredRole.STAFF))]
