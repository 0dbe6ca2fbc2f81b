"""A client of the socket, and a server on a port that can be stopped and started again."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any
from uuid import UUID

import httpx
from websockets.asyncio.client import ClientConnection, connect

from forge.cli.processes import serving
from forge.http.app import end_streams
from forge.http.auth.access import Identity
from forge.http.auth.rules import AuthRules
from forge.http.auth.watch_tokens import LIFETIME, WatchTokens
from tests.faults.kit.process import until
from tests.http.conftest import AUTH, SECRET

PATIENCE = 20


class Client:
    """One socket, and what came on it."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket

    async def say(self, type: str, **rest: Any) -> None:
        await self.socket.send(json.dumps({"type": type, **rest}, default=str))

    async def subscribe(self, job_id: UUID, **rest: Any) -> None:
        await self.say("subscribe", job_id=job_id, **rest)

    async def next(self) -> dict[str, Any]:
        async with asyncio.timeout(PATIENCE):
            message: dict[str, Any] = json.loads(await self.socket.recv())
            return message

    async def job(self, wanted: Callable[[dict[str, Any]], bool] = lambda job: True) -> Any:
        """Read until a job matches."""
        async with asyncio.timeout(PATIENCE):
            while True:
                message = await self.next()
                assert message["type"] == "job", message
                if wanted(message["job"]):
                    return message["job"]

    async def closed(self) -> int | None:
        """Wait until the server has closed the socket and return its code."""
        async with asyncio.timeout(PATIENCE):
            await self.socket.wait_closed()
        return self.socket.close_code


@asynccontextmanager
async def client(
    address: str, headers: dict[str, str] | None = None, query: str = "", **options: Any
) -> AsyncIterator[Client]:
    """Open a socket for the time of the block."""
    url = address.replace("http:", "ws:") + "/_api/ws" + (query and f"?{query}")
    async with connect(url, additional_headers=headers, **options) as socket:
        yield Client(socket)


def watch_token(job_id: UUID, *, lifetime: float = LIFETIME) -> str:
    """Create a watch token that expires in `seconds`."""
    rules = AuthRules.of(AUTH)
    (key,) = rules.keys()
    maker = Identity("ann", frozenset(), expires_at=time.time() + lifetime, key=key)
    return WatchTokens(SECRET.encode, rules.keys).make(job_id, maker).text


class Events:
    """The events of one stream, one at a time."""

    def __init__(self, answer: httpx.Response) -> None:
        self.answer = answer
        self._lines = answer.aiter_lines()

    async def next(self) -> dict[str, str] | None:
        """Return the next event by its fields, or None at the end; comments are passed over."""
        event: dict[str, str] = {}
        async with asyncio.timeout(PATIENCE):
            async for line in self._lines:
                if line == "" and "data" in event:
                    return event
                name, _, value = line.partition(": ")
                event[name] = value
        return None

    async def job(self) -> dict[str, Any]:
        event = await self.next()
        assert event is not None
        assert event["event"] == "job", event
        job: dict[str, Any] = json.loads(event["data"])
        return job


@asynccontextmanager
async def events(
    address: str, job_id: UUID, headers: dict[str, str] | None = None, **query: str
) -> AsyncIterator[Events]:
    """Open a stream for the time of the block."""
    path = f"/_api/jobs/{job_id}/events"
    async with (
        httpx.AsyncClient(base_url=address, timeout=PATIENCE) as http,
        http.stream("GET", path, headers=headers, params=query) as answer,
    ):
        yield Events(answer)


class Served:
    """A server as `forge server` runs it, which can be stopped and replaced."""

    def __init__(self, api: Any, port: int = 0) -> None:
        listener = serving.listen("127.0.0.1", port)
        self.port = listener.getsockname()[1]
        self._server = serving.make_server(api, at_end=partial(end_streams, api))
        self._task = asyncio.create_task(self._server.serve([listener]))

    async def started(self) -> str:
        await until(lambda: self._server.started or self._task.done(), 20, "the server started")
        return f"http://127.0.0.1:{self.port}"

    async def stop(self) -> None:
        self._server.should_exit = True
        await asyncio.wait_for(self._task, 30)
