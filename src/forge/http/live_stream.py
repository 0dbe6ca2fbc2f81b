"""The stream of one job's events, written as fast as it is read and no faster."""

import asyncio
import json
from collections.abc import AsyncIterator
from uuid import UUID

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from forge.core.errors import ForgeError, UnknownJob
from forge.http.auth import refuse
from forge.http.live import RECHECK, STALL, Right, until_one_ends
from forge.http.live_view import LiveJob
from forge.http.problem import Problem
from forge.http.refusals import as_problem
from forge.hub import Closed, Hub, Newest

MEDIA_TYPE = "text/event-stream"
# How the id of the last event ends: who comes back with it has seen everything.
FINAL = "-final"
# Proxies end what is silent for a minute; most of them.
KEEP_ALIVE = 15.0
RETRY = 2000


class EventStream(Response):
    """Sends a job as it stands, then at each change, until it is final."""

    media_type = MEDIA_TYPE
    charset = "utf-8"

    def __init__(self, hub: Hub[LiveJob], job_id: UUID, right: Right) -> None:
        # X-Accel-Buffering: nginx would keep the events until its buffer is full.
        super().__init__(headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._hub = hub
        self._job_id = job_id
        self._right = right

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        await send(start)
        try:
            await until_one_ends(self._write(send), _until_gone(receive))
        except OSError:  # it went away; a TimeoutError, when it took nothing for long, is one too
            return

    async def _write(self, send: Send) -> None:
        with self._hub.watching(self._job_id) as newest:
            async for text in self._events(newest):
                async with asyncio.timeout(STALL):
                    body = {"type": "http.response.body", "body": text.encode(), "more_body": True}
                    await send(body)
        await send({"type": "http.response.body", "body": b""})

    async def _events(self, newest: Newest[LiveJob]) -> AsyncIterator[str]:
        yield f"retry: {RETRY}\n\n"
        silent_for = 0.0
        while self._right.holds():
            try:
                async with asyncio.timeout(RECHECK):
                    job = await newest.next()
            except TimeoutError:
                silent_for += RECHECK
                if silent_for >= KEEP_ALIVE:
                    silent_for = 0.0
                    yield ":\n\n"
                continue
            except Closed:
                return  # the browser comes back by itself, to whoever serves it then
            except ForgeError as error:
                yield self._end(as_problem(error))
                return
            silent_for = 0.0
            if not self._right.covers(job):
                yield self._end(as_problem(UnknownJob.of(self._job_id)))
                return
            yield _event("job", job.job, f"{job.version}{FINAL if job.is_final else ''}")
            if job.is_final:
                return
        yield self._end(refuse("the token is over or withdrawn; come back with another"))

    def _end(self, problem: Problem) -> str:
        told = {"code": problem.code, "message": problem.detail, "job_id": str(self._job_id)}
        return _event("problem", json.dumps(told))


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _event(name: str, data: str, id: str | None = None) -> str:
    mark = "" if id is None else f"id: {id}\n"
    return f"event: {name}\n{mark}data: {data}\n\n"
