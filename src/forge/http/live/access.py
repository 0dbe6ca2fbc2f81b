"""Access to live updates: the hub that all followers share, and which jobs each may follow."""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

from fastapi import Depends, Query
from starlette.requests import HTTPConnection

from forge.core.errors import DatabaseUnavailable, UnknownJob
from forge.http.auth.access import AccessCheck, Identity, RequiredRole, identity_of
from forge.http.live.view import LiveState
from forge.http.problems.problem import Problem
from forge.jobs.hub import Hub, HubClosed
from forge.jobs.list_watcher import ListWatcher
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
# Seconds to wait for the first state of a job.
FIRST_STATE_TIMEOUT = 5.0


class LiveHub:
    """The hub that all sockets and streams of an app share."""

    def __init__(self, app: "Forge") -> None:
        self._app = app
        self._database: Database | None = None
        self.hub: Hub[LiveState] | None = None
        self.lists: ListWatcher | None = None

    async def open(self) -> Hub[LiveState]:
        """Return the hub on the app's present database; the app's session closes it."""
        session = await self._app.session()
        database = await session.database()
        if self.hub is None or self._database is not database:
            self.hub = Hub(database, jobs.changed_view, LiveState.from_row)
            self._database = database
            session.on_close(self.hub.close)
        return self.hub

    async def open_lists(self) -> ListWatcher:
        """Return the watcher of lists on the app's present database."""
        await self.open()
        assert self._database is not None
        if self.lists is None or self.lists.database is not self._database:
            self.lists = ListWatcher(self._database)
            (await self._app.session()).on_close(self.lists.close)
        return self.lists

    async def close(self) -> None:
        """End all streams."""
        if self.hub is not None:
            await self.hub.close()
        if self.lists is not None:
            await self.lists.close()


@dataclass(frozen=True, slots=True)
class TokenAccess:
    """Access with a bearer token: to the jobs of its tenant."""

    identity: Identity
    authenticator: "Authenticator"

    def is_valid(self) -> bool:
        return self.authenticator.is_still_valid(self.identity)

    def covers(self, job: LiveState) -> bool:
        return self.identity.tenant_id is None or self.identity.tenant_id == job.tenant_id


@dataclass(frozen=True, slots=True)
class WatchTokenAccess:
    """Access with a watch token: to one job, for an hour at most."""

    token: str
    job_id: UUID
    watch_tokens: "WatchTokens"

    def is_valid(self) -> bool:
        return self.watch_tokens.is_good(self.token, self.job_id)

    def covers(self, job: LiveState) -> bool:
        return True


JobAccess = TokenAccess | WatchTokenAccess


async def access_by_request(connection: HTTPConnection) -> TokenAccess:
    """Return the access that the request itself gives, or raise a 401 or 403."""
    return _token_access(await identity_of(connection), connection.app.state.authenticator)


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


class FollowerCheck(AccessCheck):
    """Allows callers with the role, and callers with a watch token for the job."""

    async def __call__(
        self,
        connection: HTTPConnection,
        job_id: UUID,
        watch_token: Annotated[
            str | None, Query(description="Access to this job, instead of a bearer token.")
        ] = None,
    ) -> JobAccess:
        if watch_token is None:
            return await access_by_request(connection)
        return access_by_watch_token(connection, watch_token, job_id)


class SocketCheck(AccessCheck):
    """The role that a socket requires; it is checked by the header and at each message."""

    async def __call__(self) -> None:
        """Allow the request: a token may come with the first message."""


Follower = Annotated[JobAccess, Depends(FollowerCheck(RequiredRole.USER))]


async def current_state(hub: Hub[LiveState], job_id: UUID, access: JobAccess) -> LiveState:
    """Return the state of a job, or raise UnknownJob if it is not one of the caller's."""
    with hub.watching(job_id) as newest:
        try:
            async with asyncio.timeout(FIRST_STATE_TIMEOUT):
                job = await newest.next()
        except TimeoutError:
            raise DatabaseUnavailable(
                f"no answer within {FIRST_STATE_TIMEOUT:g} s; try again"
            ) from None
        except HubClosed:
            raise Problem(
                "unavailable",
                "the server is shutting down; reconnect",
                headers={"Retry-After": "1"},
            ) from None
    if not access.covers(job):
        raise UnknownJob.of(job_id)
    return job


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
