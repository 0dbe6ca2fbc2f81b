"""FastAPI and Starlette: lifespan, dependencies, and the API behind the sign-in of the host."""

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from typing import Annotated, Any, TypeVar

from fastapi import Depends
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection

from forge.app import Forge
from forge.core.errors import InvalidValue
from forge.http import create_app
from forge.http.auth.access import Identity, Role
from forge.http.auth.authenticator import Authenticator
from forge.http.auth.rules import AuthRules, watch_rules
from forge.http.auth.watch_tokens import UNBOUND
from forge.http.problems.problem import Problem

__all__ = ["Caller", "ForgeApp", "Identity", "Role", "lifespan", "mount"]

# Returns who calls, or None for a caller that the host does not know.
Authenticate = Callable[[HTTPConnection], Awaitable[Identity | None]]
Host = TypeVar("Host", bound=Starlette)
Lifespan = Callable[[Host], AbstractAsyncContextManager[Mapping[str, Any] | None]]
# Seconds after which open sockets and streams must authenticate again.
SESSION_SECONDS = 300.0


def lifespan(app: Forge, around: Lifespan[Host] | None = None) -> Lifespan[Host]:
    """Return a lifespan that opens the app at startup and closes it at shutdown.

    `around` is the host's own lifespan; it starts first and ends last.
    """

    @asynccontextmanager
    async def opened(host: Host) -> AsyncIterator[Mapping[str, Any] | None]:
        host.state.forge = app
        async with _entered(around, host) as state, app:
            if not app.config.server.read_only:
                await app.schedules.plant_at_start()
            yield state

    return opened


def mount(
    host: Starlette,
    path: str,
    app: Forge,
    *,
    authenticate: Authenticate | None = None,
    session_seconds: float = SESSION_SECONDS,
) -> None:
    """Mount the API and the dashboard at a path, with the host's own authentication.

    `authenticate` gets each request and returns the caller, or None. Callers that it does not know
    may still send one of Forge's own tokens. Open sockets and streams of its callers authenticate
    again after `session_seconds`.
    """
    if not path.startswith("/") or path == "/":
        raise InvalidValue(f"mount at a path such as '/forge', not {path!r}")
    rules = watch_rules(app.config)
    authenticator = HostAuthenticator(rules, authenticate, session_seconds)
    host.state.forge = app
    host.state.forge_authenticator = authenticator
    host.mount(path, create_app(app, authenticator=authenticator), name="forge")


class HostAuthenticator(Authenticator):
    """Asks the host who calls, then looks for one of Forge's own tokens."""

    def __init__(
        self,
        rules: Callable[[], AuthRules],
        authenticate: Authenticate | None,
        session_seconds: float,
    ) -> None:
        super().__init__(rules)
        self._authenticate = authenticate
        self._session_seconds = session_seconds

    async def identify_request(self, connection: HTTPConnection) -> Identity:
        found = None if self._authenticate is None else await self._authenticate(connection)
        if found is None:
            return await super().identify_request(connection)
        if found.expires_at is None:
            # The host can withdraw its session, which an open socket would not notice.
            found = replace(found, expires_at=time.time() + self._session_seconds)
        return found

    def keys(self) -> frozenset[str]:
        """Return the keys of tokens, and the empty one of sessions: their watch tokens expire."""
        return super().keys() | {UNBOUND}


def _forge_of(connection: HTTPConnection) -> Forge:
    """Return the app of the host, from its lifespan or its mount."""
    found = getattr(connection.app.state, "forge", None)
    if found is None:
        raise InvalidValue(
            "this application has no Forge app; create it with FastAPI(lifespan=lifespan(app))"
        )
    forge: Forge = found
    return forge


async def _caller_of(connection: HTTPConnection) -> Identity:
    """Return who calls one of the host's own routes, as the mounted API sees them."""
    authenticator = getattr(connection.app.state, "forge_authenticator", None)
    if authenticator is None:
        raise InvalidValue("Caller requires the mounted API; call mount(host, '/forge', app)")
    try:
        identity: Identity = await authenticator.identify_request(connection)
    except Problem as problem:
        raise HTTPException(problem.status, problem.detail, problem.headers) from None
    return identity


ForgeApp = Annotated[Forge, Depends(_forge_of)]
Caller = Annotated[Identity, Depends(_caller_of)]


@asynccontextmanager
async def _entered(
    around: Lifespan[Host] | None, host: Host
) -> AsyncIterator[Mapping[str, Any] | None]:
    if around is None:
        yield None
    else:
        async with around(host) as state:
            yield state
