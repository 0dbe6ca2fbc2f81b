"""Following jobs over HTTP: one hub for all sockets and streams of an app, and who may see what."""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID

from starlette.requests import HTTPConnection

from forge.http.access import Need
from forge.http.identity import Identity
from forge.http.live_view import LiveJob
from forge.http.problem import Problem
from forge.hub import Hub
from forge.store import jobs
from forge.store.database import Database

if TYPE_CHECKING:
    from forge.http.auth import Authenticator
    from forge.http.watch_tokens import WatchTokens

# Who lost the right to see something sees it this much longer, at most.
RECHECK = 2.0
# A reader that took nothing for so long is given up.
STALL = 30.0


async def hub_of(connection: HTTPConnection) -> Hub[LiveJob]:
    """Return the app's hub in this event loop; it is closed with the app."""
    state = connection.app.state
    session = await state.forge.session()
    database = await session.database()
    kept: tuple[Database, Hub[LiveJob]] | None = getattr(state, "live", None)
    if kept is None or kept[0] is not database:
        hub = Hub(database, jobs.changed_view, LiveJob.from_row)
        session.on_close(hub.close)
        state.live = kept = (database, hub)
    return kept[1]


@dataclass(frozen=True, slots=True)
class ByIdentity:
    """The right of somebody with a token: to the jobs of their tenant."""

    identity: Identity
    authenticator: "Authenticator"

    def holds(self) -> bool:
        return self.authenticator.is_still_valid(self.identity)

    def covers(self, job: LiveJob) -> bool:
        return self.identity.tenant_id is None or self.identity.tenant_id == job.tenant_id


@dataclass(frozen=True, slots=True)
class ByWatchToken:
    """The right of a watch token's bearer: to that one job, for an hour at most."""

    token: str
    job_id: UUID
    watch_tokens: "WatchTokens"

    def holds(self) -> bool:
        return self.watch_tokens.is_good(self.token, self.job_id)

    def covers(self, job: LiveJob) -> bool:
        return True


Right = ByIdentity | ByWatchToken


def right_of_header(connection: HTTPConnection) -> ByIdentity:
    """Return what the Authorization header gives a right to, or raise a 401 or 403."""
    authenticator: Authenticator = connection.app.state.authenticator
    return _allowed(authenticator.identify(connection.headers.get("authorization")), authenticator)


def right_of_token(connection: HTTPConnection, token: str) -> ByIdentity:
    """Return what a token gives a right to, or raise a 401 or 403."""
    authenticator: Authenticator = connection.app.state.authenticator
    return _allowed(authenticator.identify_token(token), authenticator)


def right_of_watch_token(connection: HTTPConnection, token: str, job_id: UUID) -> ByWatchToken:
    """Return the right to follow the one job that a watch token is for, or raise a 401."""
    right = ByWatchToken(token, job_id, connection.app.state.watch_tokens)
    if not right.holds():
        raise Problem(
            "unauthenticated",
            "the watch token has ended, or is not for this job; ask for a new one with "
            "`POST /_api/jobs/{id}/watch_token`",
            headers={"WWW-Authenticate": "Bearer"},
        )
    return right


async def until_one_ends(*parts: Coroutine[Any, Any, None]) -> None:
    """Run the halves of a conversation until one of them ends, and end the other with it."""
    tasks = [asyncio.ensure_future(part) for part in parts]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in done:
        task.result()


def _allowed(identity: Identity, authenticator: "Authenticator") -> ByIdentity:
    Need.USER.demand_of(identity)
    return ByIdentity(identity, authenticator)
