"""One WebSocket: the jobs and lists that it follows, its access, and how it is closed."""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple
from uuid import UUID

from starlette.websockets import WebSocket, WebSocketDisconnect

from forge.core.errors import ForgeError, UnknownJob
from forge.http.auth.authenticator import unauthenticated
from forge.http.connections.limits import AUTHENTICATED
from forge.http.live.access import (
    RECHECK_INTERVAL,
    SEND_TIMEOUT,
    TokenAccess,
    WatchTokenAccess,
    access_by_token,
    access_by_watch_token,
    until_first_ends,
)
from forge.http.live.lists import FollowedLists
from forge.http.live.messages import (
    MAX_MESSAGE_SIZE,
    AuthMessage,
    ClientMessage,
    SubscribeListMessage,
    SubscribeMessage,
    UnsubscribeListMessage,
    UnsubscribeMessage,
    error_message,
    length_of,
    read,
)
from forge.http.live.view import LiveState
from forge.http.problems.error_handlers import as_problem
from forge.http.problems.problem import Problem
from forge.jobs.hub import Hub, HubClosed
from forge.jobs.list_watcher import ListWatcher

# Messages that a client may send at once, and then per second.
MAX_BURST = 2000
MESSAGES_PER_SECOND = 100
# A message counts as one more for each of these characters: parsing it takes longer.
LONG_MESSAGE = 1024


class MessageRate:
    """Limits the rate of messages, after an initial burst."""

    def __init__(self) -> None:
        self._left = float(MAX_BURST)
        self._filled_at = asyncio.get_running_loop().time()

    async def wait(self, length: int) -> None:
        """Wait until a message of this length may be handled."""
        now = asyncio.get_running_loop().time()
        self._left = min(MAX_BURST, self._left + (now - self._filled_at) * MESSAGES_PER_SECOND)
        self._left -= 1 + length // LONG_MESSAGE
        self._filled_at = now
        if self._left < 0:
            await asyncio.sleep(-self._left / MESSAGES_PER_SECOND)


MAX_SUBSCRIPTIONS = 1000
# Seconds that a client has to authenticate or to subscribe with a watch token.
AUTH_TIMEOUT = 10.0


class CloseReason(NamedTuple):
    """The code and reason of the closing frame."""

    code: int
    reason: str


UNAUTHENTICATED = CloseReason(4401, "the token has expired or been revoked; reconnect with another")
AUTH_TIMED_OUT = CloseReason(4401, "no auth message or watch token in time; reconnect")
TOO_LARGE = CloseReason(1009, "the message is too large")
STALLED = CloseReason(1008, "the client did not read in time")
STOPPING = CloseReason(1012, "the server is shutting down; reconnect")


class FollowerSocket:
    """One socket; holds the newest unsent state of each followed job, never a queue."""

    def __init__(
        self,
        websocket: WebSocket,
        hub: Hub[LiveState],
        lists: ListWatcher,
        access: TokenAccess | None,
    ) -> None:
        self._websocket = websocket
        self._hub = hub
        self._access = access
        # None: the access of the socket itself, which may be renewed.
        self._followed: dict[UUID, WatchTokenAccess | None] = {}
        self._lists = FollowedLists(websocket.app.state.forge, lists, self._put, self._stop)
        # By the id of a job, or of a list.
        self._unsent: dict[UUID | str, str] = {}
        self._has_unsent = asyncio.Event()
        self._close_reason: CloseReason | None = None
        if access is not None:
            self._mark_authenticated()

    async def serve(self) -> None:
        """Exchange messages until either side closes the socket."""
        try:
            await until_first_ends(self._receive(), self._send_updates(), self._recheck_access())
        except WebSocketDisconnect:
            return
        except TimeoutError:
            self._close_reason = STALLED
        finally:
            for job_id in list(self._followed):
                self._unsubscribe(job_id)
            self._lists.close()
        if self._close_reason is not None:
            with suppress(TimeoutError, WebSocketDisconnect, RuntimeError):
                async with asyncio.timeout(1):
                    await self._websocket.close(*self._close_reason)

    async def _receive(self) -> None:
        rate = MessageRate()
        while self._close_reason is None:
            message = await self._websocket.receive()
            if message["type"] == "websocket.disconnect":
                return
            if (length := length_of(message)) > MAX_MESSAGE_SIZE:
                self._close_reason = TOO_LARGE
                return
            await rate.wait(length)
            target: dict[str, Any] = {}
            try:
                parsed = read(message)
                target = _target_of(parsed)
                self._handle(parsed)
            except (Problem, ForgeError) as error:
                await self._send(error_message(as_problem(error), **target))

    def _handle(self, message: ClientMessage) -> None:
        match message:
            case AuthMessage():
                self._authenticate(message.token)
            case SubscribeMessage():
                self._subscribe(message)
            case UnsubscribeMessage():
                self._unsubscribe(message.job_id)
            case SubscribeListMessage():
                self._lists.subscribe(message, self._access)
            case UnsubscribeListMessage():
                self._lists.unsubscribe(message.id)
                self._unsent.pop(message.id, None)

    def _authenticate(self, token: str) -> None:
        try:
            self._access = access_by_token(self._websocket, token)
        except Problem:
            self._close_reason = UNAUTHENTICATED
            raise
        self._lists.renew(self._access)
        self._mark_authenticated()

    def _mark_authenticated(self) -> None:
        """Keep the server from closing this socket to make room for others."""
        self._websocket.scope.setdefault("state", {})[AUTHENTICATED] = True

    def _subscribe(self, message: SubscribeMessage) -> None:
        access = None
        if message.watch_token is not None:
            access = access_by_watch_token(self._websocket, message.watch_token, message.job_id)
        elif self._access is None:
            raise unauthenticated(
                "not authenticated; send an auth message first, or add the job's watch_token"
            )
        if message.job_id not in self._followed and len(self._followed) >= MAX_SUBSCRIPTIONS:
            raise Problem(
                "too_many",
                f"this socket already follows {MAX_SUBSCRIPTIONS} jobs; unsubscribe from some, or "
                "open another socket",
            )
        self._followed[message.job_id] = access
        self._mark_authenticated()
        self._hub.watch(message.job_id, self._on_change)

    def _unsubscribe(self, job_id: UUID) -> None:
        if job_id in self._followed:
            del self._followed[job_id]
            self._hub.unwatch(job_id, self._on_change)
            self._unsent.pop(job_id, None)

    def _on_change(self, job_id: UUID, change: LiveState | ForgeError) -> None:
        if job_id not in self._followed:
            return
        if isinstance(change, LiveState):
            access = self._followed[job_id] or self._access
            if access is not None and access.covers(change):
                self._put(job_id, change.message)
            else:
                self._end_subscription(job_id, UnknownJob.of(job_id))
        elif isinstance(change, HubClosed):
            self._stop()
        else:
            self._end_subscription(job_id, change)

    def _stop(self) -> None:
        self._close_reason = STOPPING
        self._has_unsent.set()

    def _put(self, key: UUID | str, text: str) -> None:
        """Send a message, instead of an unsent one about the same job or list."""
        self._unsent[key] = text
        self._has_unsent.set()

    def _end_subscription(self, job_id: UUID, error: ForgeError | Problem) -> None:
        """End one subscription with an error message."""
        self._unsubscribe(job_id)
        self._put(job_id, error_message(as_problem(error), job_id))

    async def _send_updates(self) -> None:
        while self._close_reason is None:
            await self._has_unsent.wait()
            self._has_unsent.clear()
            for text in self._take_unsent():
                await self._send(text)
                await asyncio.sleep(0)

    def _take_unsent(self) -> Iterator[str]:
        while self._unsent:
            yield self._unsent.pop(next(iter(self._unsent)))

    async def _send(self, text: str) -> None:
        async with asyncio.timeout(SEND_TIMEOUT):
            await self._websocket.send_text(text)

    async def _recheck_access(self) -> None:
        """Check periodically that access is still valid; return when it is not."""
        valid_at = asyncio.get_running_loop().time()
        while self._close_reason is None:
            await asyncio.sleep(RECHECK_INTERVAL)
            if self._access is not None and not self._access.is_valid():
                self._close_reason = UNAUTHENTICATED
            expired = [
                job_id
                for job_id, access in self._followed.items()
                if access and not access.is_valid()
            ]
            for job_id in expired:
                self._end_subscription(
                    job_id, unauthenticated("the watch token has expired; request a new one")
                )
            if self._access is not None or self._followed:
                valid_at = asyncio.get_running_loop().time()
            elif expired:
                self._close_reason = UNAUTHENTICATED
            elif asyncio.get_running_loop().time() > valid_at + AUTH_TIMEOUT - RECHECK_INTERVAL:
                self._close_reason = AUTH_TIMED_OUT


def _target_of(message: ClientMessage) -> dict[str, Any]:
    """Return what an error about a message names."""
    match message:
        case AuthMessage():
            return {}
        case SubscribeMessage() | UnsubscribeMessage():
            return {"job_id": message.job_id}
        case SubscribeListMessage() | UnsubscribeListMessage():
            return {"list_id": message.id}
