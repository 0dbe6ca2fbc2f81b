"""Who may call what: each route names what it needs, and is given the caller."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from fastapi import Depends
from starlette.requests import HTTPConnection

from forge.http.identity import Identity, Role
from forge.http.loopback import is_local, is_plain_local_json
from forge.http.problem import Problem

if TYPE_CHECKING:
    from forge.app import Forge
    from forge.http.auth import Authenticator
    from forge.store.statement import Statement

T = TypeVar("T")
# A program on the developer's own machine that shows no token.
DEVELOPER = Identity("developer", frozenset({Role.USER}))


class Need(StrEnum):
    """What a route asks of its caller."""

    USER = "user"
    STAFF = "staff"
    MANAGER = "manager"

    def is_met_by(self, roles: frozenset[Role]) -> bool:
        match self:
            case Need.USER:
                return bool(roles & {Role.USER, Role.STAFF})
            case Need.STAFF:
                return Role.STAFF in roles
            case Need.MANAGER:
                return roles >= {Role.STAFF, Role.MANAGER}

    def demand_of(self, identity: Identity) -> None:
        """Raise a 403 unless somebody has the role."""
        if not self.is_met_by(identity.roles):
            raise Problem("forbidden", self._missing(identity.roles))

    def _missing(self, roles: frozenset[Role]) -> str:
        """Name every role that a token lacks: managers are staff, too."""
        needed = ["staff", "manager"] if self is Need.MANAGER else [str(self)]
        lacks = [role for role in needed if role not in roles]
        if len(lacks) == 1:
            return f"this needs the role {lacks[0]}; ask for a token that has it"
        return f"this needs the roles {' and '.join(lacks)}; ask for a token that has both"


@dataclass(frozen=True, slots=True)
class Caller:
    """An authenticated caller, and the database as they may see it."""

    identity: Identity
    app: "Forge"

    @property
    def tenant_id(self) -> int | None:
        """The tenant whose rows are the caller's; None for an operator, who sees all."""
        return self.identity.tenant_id

    def tenant_meant(self, asked: int | None) -> int | None:
        """Return the tenant that a request is about: an operator may name any, others their own."""
        if self.tenant_id is None:
            return asked
        if asked not in (None, self.tenant_id):
            raise Problem("forbidden", "tenant_id is not the token's; leave it out")
        return self.tenant_id

    async def run(self, statement: "Statement[T]") -> T:
        """Run one statement on the caller's behalf: row security shows it their rows alone."""
        database = await (await self.app.session()).database()
        return await database.run(statement, self.identity.tenant_id)

    async def run_over_all(self, statement: "Statement[T]") -> T:
        """Run one statement over everybody's rows, of which the caller is told numbers at most."""
        database = await (await self.app.session()).database()
        return await database.run(statement)


def allow(need: Need) -> Callable[[HTTPConnection], Coroutine[Any, Any, Caller]]:
    """Return the dependency that lets through whoever meets the need."""

    async def caller(connection: HTTPConnection) -> Caller:
        identity = _identity(connection)
        need.demand_of(identity)
        return Caller(identity, connection.app.state.forge)

    caller.need = need  # type: ignore[attr-defined]
    return caller


def _identity(connection: HTTPConnection) -> Identity:
    state = connection.app.state
    authorization = connection.headers.get("authorization")
    if authorization is None and state.is_development and is_plain_local_json(connection):
        return DEVELOPER
    authenticator: Authenticator = state.authenticator
    return authenticator.identify(authorization)


async def local_or_staff(connection: HTTPConnection) -> None:
    """Let in who has the role, and whoever calls from this very machine."""
    if not is_local(connection):
        await allow(Need.STAFF)(connection)


local_or_staff.need = Need.STAFF  # type: ignore[attr-defined]

User = Annotated[Caller, Depends(allow(Need.USER))]
Staff = Annotated[Caller, Depends(allow(Need.STAFF))]
Manager = Annotated[Caller, Depends(allow(Need.MANAGER))]
LocalOrStaff = Annotated[None, Depends(local_or_staff)]
