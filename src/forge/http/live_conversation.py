"""The conversation on one socket: who speaks, what they follow, and what they have yet to read."""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple
from uuid import UUID

from starlette.websockets import WebSocket, WebSocketDisconnect

from forge.core.errors import ForgeError, UnknownJob
from forge.http.auth import refuse
from forge.http.connections import INTRODUCED
from forge.http.live import (
    RECHECK,
    STALL,
    ByIdentity,
    ByWatchToken,
    right_of_token,
    right_of_watch_token,
    until_one_ends,
)
from forge.http.live_messages import (
    LARGEST,
    Auth,
    Said,
    Subscribe,
    Unsubscribe,
    error_message,
    length_of,
    read,
)
from forge.http.live_pace import Pace
from forge.http.live_view import LiveJob
from forge.http.problem import Problem
from forge.http.refusals import as_problem
from forge.hub import Closed, Hub

MOST_SUBSCRIPTIONS = 1000
# Who has not said by then who they are, or which job they may follow, is sent away.
INTRODUCTION = 10.0


class Ending(NamedTuple):
    """Why the server ends a conversation: the code and reason of the closing frame."""

    code: int
    reason: str


UNAUTHENTICATED = Ending(4401, "the token is over or withdrawn; come back with another")
UNKNOWN = Ending(4401, "nobody said who they are, or which job they may follow")
TOO_LARGE = Ending(1009, "the message is too large")
STALLED = Ending(1008, "nothing was read for too long")
STOPPING = Ending(1012, "the server stops; come back")


class Conversation:
    """Holds the newest state of each followed job until it is sent: one each, never a queue."""

    def __init__(self, websocket: WebSocket, hub: Hub[LiveJob], right: ByIdentity | None) -> None:
        self._websocket = websocket
        self._hub = hub
        self._right = right
        # None stands for the right of whoever speaks, which may be renewed.
        self._followed: dict[UUID, ByWatchToken | None] = {}
        self._unsent: dict[UUID, str] = {}
        self._news = asyncio.Event()
        self._ending: Ending | None = None
        if right is not None:
            self._mark_introduced()

    async def hold(self) -> None:
        """Talk until either side ends it."""
        try:
            await until_one_ends(self._listen(), self._talk(), self._watch_rights())
        except WebSocketDisconnect:
            return
        except TimeoutError:
            self._ending = STALLED
        finally:
            for job_id in list(self._followed):
                self._leave(job_id)
        if self._ending is not None:
            with suppress(TimeoutError, WebSocketDisconnect, RuntimeError):
                async with asyncio.timeout(1):
                    await self._websocket.close(*self._ending)

    async def _listen(self) -> None:
        pace = Pace()
        while self._ending is None:
            message = await self._websocket.receive()
            if message["type"] == "websocket.disconnect":
                return
            if (length := length_of(message)) > LARGEST:
                self._ending = TOO_LARGE
                return
            await pace.step(length)
            job_id = None
            try:
                said = read(message)
                job_id = getattr(said, "job_id", None)
                self._heed(said)
            except Problem as problem:
                await self._send(error_message(problem, job_id))

    def _heed(self, said: Said) -> None:
        match said:
            case Auth():
                self._introduce(said.token)
            case Subscribe():
                self._follow(said)
            case Unsubscribe():
                self._leave(said.job_id)

    def _introduce(self, token: str) -> None:
        try:
            self._right = right_of_token(self._websocket, token)
        except Problem:
            self._ending = UNAUTHENTICATED
            raise
        self._mark_introduced()

    def _mark_introduced(self) -> None:
        """Show the server that this socket is in use, and not to be closed to make room."""
        self._websocket.scope.setdefault("state", {})[INTRODUCED] = True

    def _follow(self, said: Subscribe) -> None:
        right = None
        if said.watch_token is not None:
            right = right_of_watch_token(self._websocket, said.watch_token, said.job_id)
        elif self._right is None:
            raise refuse("send an auth message first, or the job's watch_token with this one")
        if said.job_id not in self._followed and len(self._followed) >= MOST_SUBSCRIPTIONS:
            raise Problem(
                "too_many",
                f"{MOST_SUBSCRIPTIONS} jobs are followed here; unsubscribe from some, or open "
                "another socket",
            )
        self._followed[said.job_id] = right
        self._mark_introduced()
        self._hub.watch(said.job_id, self._tell)

    def _leave(self, job_id: UUID) -> None:
        if job_id in self._followed:
            del self._followed[job_id]
            self._hub.unwatch(job_id, self._tell)
            self._unsent.pop(job_id, None)

    def _tell(self, job_id: UUID, news: LiveJob | ForgeError) -> None:
        if job_id not in self._followed:
            return
        if isinstance(news, LiveJob):
            right = self._followed[job_id] or self._right
            if right is not None and right.covers(news):
                self._unsent[job_id] = news.message
                self._news.set()
            else:
                self._dismiss(job_id, UnknownJob.of(job_id))
        elif isinstance(news, Closed):
            self._ending = STOPPING
            self._news.set()
        else:
            self._dismiss(job_id, news)

    def _dismiss(self, job_id: UUID, error: ForgeError | Problem) -> None:
        """End one subscription and say why."""
        self._leave(job_id)
        self._unsent[job_id] = error_message(as_problem(error), job_id)
        self._news.set()

    async def _talk(self) -> None:
        while self._ending is None:
            await self._news.wait()
            self._news.clear()
            for text in self._take_unsent():
                await self._send(text)
                await asyncio.sleep(0)

    def _take_unsent(self) -> Iterator[str]:
        while self._unsent:
            yield self._unsent.pop(next(iter(self._unsent)))

    async def _send(self, text: str) -> None:
        async with asyncio.timeout(STALL):
            await self._websocket.send_text(text)

    async def _watch_rights(self) -> None:
        """Come back every now and then; return when there is no right to stay."""
        known_at = asyncio.get_running_loop().time()
        while self._ending is None:
            await asyncio.sleep(RECHECK)
            if self._right is not None and not self._right.holds():
                self._ending = UNAUTHENTICATED
            over = [
                job_id for job_id, right in self._followed.items() if right and not right.holds()
            ]
            for job_id in over:
                self._dismiss(job_id, refuse("the watch token is over; ask for a new one"))
            if self._right is not None or self._followed:
                known_at = asyncio.get_running_loop().time()
            elif over:
                self._ending = UNAUTHENTICATED
            elif asyncio.get_running_loop().time() > known_at + INTRODUCTION - RECHECK:
                self._ending = UNKNOWN
