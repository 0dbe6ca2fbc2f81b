"""Access to live updates: the hub that all followers share, and which jobs each may follow."""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID

from starlette.requests import HTTPConnection

from forge.http.auth.access import Identity, RequiredRole
from forge.http.live.view import LiveJob
from forge.http.problems.problem import Problem
from forge.jobs.hub import Hub
from forge.store import jobs
from forge.store.connection.database import Database

if TYPE_CHECKING:
    from forge.app import Forge
    from forge.http.auth.authenticator import Authenticator
    from forge.http.auth.watch_tokens import WatchTokens

# Seconds between two checks of the access of an open stream.
RECHECK_INTERVAL = 2.0
# Seconds that a client may take to read a message.
SEND_TIMEOUT = 30.0


class LiveHub:
    """The hub that all sockets and streams of an app share."""

    def __init__(self, app: "Forge") -> None:
        self._app = app
        self._database: Database | None = None
        self.hub: Hub[LiveJob] | None = None

    async def open(self) -> Hub[LiveJob]:
        """Return the hub on the app's present database; the app's session closes it."""
        session = await self._app.session()
        database = await session.database()
        if self.hub is None or self._database is not database:
            self.hub = Hub(database, jobs.changed_view, LiveJob.from_row)
            self._database = database
            session.on_close(self.hub.close)
        return self.hub

    async def close(self) -> None:
        """End all streams."""
        if self.hub is not None:
            await self.hub.close()


@dataclass(frozen=True, slots=True)
class TokenAccess:
    """Access with a bearer token: to the jobs of its tenant."""

    identity: Identity
    authenticator: "Authenticator"

    def is_valid(self) -> bool:
        return self.authenticator.is_still_valid(self.identity)

    def covers(self, job: LiveJob) -> bool:
        return self.identity.tenant_id is None or self.identity.tenant_id == job.tenant_id


@dataclass(frozen=True, slots=True)
class WatchTokenAccess:
    """Access with a watch token: to one job, for an hour at most."""

    token: str
    job_id: UUID
    watch_tokens: "WatchTokens"

    def is_valid(self) -> bool:
        return self.watch_tokens.is_good(self.token, self.job_id)

    def covers(self, job: LiveJob) -> bool:
        return True


JobAccess = TokenAccess | WatchTokenAccess


def access_by_header(connection: HTTPConnection) -> TokenAccess:
    """Return the access that the Authorization header gives, or raise a 401 or 403."""
    authenticator: Authenticator = connection.app.state.authenticator
    identity = authenticator.identify(connection.headers.get("authorization"))
    return _token_access(identity, authenticator)


def access_by_token(connection: HTTPConnection, token: str) -> TokenAccess:
    """Return the access that a token gives, or raise a 401 or 403."""
    authenticator: Authenticator = connection.app.state.authenticator
    return _token_access(authenticator.identify_token(token), authenticator)


def access_by_watch_token(connection: HTTPConnection, token: str, job_id: UUID) -> WatchTokenAccess:
    """Return the access that a watch token gives to its job, or raise a 401."""
    access = WatchTokenAccess(token, job_id, connection.app.state.watch_tokens)
    if not access.is_valid():
        raise Problem(
            "unauthenticated",
            "the watch token has expired or is for another job; request a new one with "
            "`POST /_api/jobs/{id}/watch_token`",
            headers={"WWW-Authenticate": "Bearer"},
        )
    return access


async def until_first_ends(*parts: Coroutine[Any, Any, None]) -> None:
    """Run coroutines until one of them ends, and cancel the others."""
    tasks = [asyncio.ensure_future(part) for part in parts]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in done:
        task.result()


def _token_access(identity: Identity, authenticator: "Authenticator") -> TokenAccess:
    RequiredRole.USER.check(identity)
    return TokenAccess(identity, authenticator)
