"""Handlers in a process of their own: for those that want it, and for suspects."""

import asyncio
import json
import os
import signal
import socket
import sys
from contextlib import suppress
from datetime import timedelta
from typing import Any

from pydantic import TypeAdapter

from forge.app import Forge
from forge.core.job import Job
from forge.core.outcome import (
    Crashed,
    Failure,
    Outcome,
    Raised,
    Returned,
    Settled,
    Snoozed,
)
from forge.core.run import Run
from forge.core.schedule_record import ScheduleRecord
from forge.worker.attempt import Attempt
from forge.worker.context import JobContext

MOST_IDLE = 4


class Children:
    """Child processes, each running one attempt at a time; idle ones are kept for the next."""

    def __init__(self, app: Forge, database_url: str) -> None:
        self._app = app
        self._url = database_url
        self._idle: list[_Child] = []

    async def run(self, attempt: Attempt) -> Outcome | Settled:
        """Run an attempt in a child, and see to it that the child ends when it should."""
        child = await self._take_idle() or await _Child.spawn()
        attempt.interrupt = lambda why: child.kill()
        if attempt.stop is not None:
            child.kill()
        try:
            answer = await child.run(self._order(attempt), attempt.context)
        except BaseException:
            child.kill()
            raise
        if answer is None:
            return Crashed(await child.end())
        attempt.interrupt = None  # from now on the child may be another attempt's
        if child.is_alive and len(self._idle) < MOST_IDLE:
            self._idle.append(child)
        else:
            await child.close()
        self._app.metrics.worker.absorb(answer["metrics"])
        return _outcome(answer)

    async def close(self) -> None:
        idle, self._idle = self._idle, []
        for child in idle:
            await child.close()

    async def _take_idle(self) -> "_Child | None":
        """Take a child that lives: the death of one that idled is nobody's crash."""
        while self._idle:
            if (child := self._idle.pop()).is_alive:
                return child
            await child.close()
        return None

    def _order(self, attempt: Attempt) -> dict[str, Any]:
        handler = attempt.definition.handler
        job = attempt.job._asdict()
        return {
            "module": handler.__module__,
            "main": _main_path(handler.__module__),
            "name": attempt.definition.name,
            "qualname": handler.__qualname__,
            "database_url": self._url,
            "pooler": self._app.config.database.pooler,
            "connect_timeout": self._app.config.database.connect_timeout.total_seconds(),
            "output_limit": self._app.config.payload.max_output,
            "job": {name: _plain(value) for name, value in job.items()},
            "schedule": _schedule(attempt.job),
        }


class _Child:
    """One process and the socket to it: a line of JSON each way per order, notes in between."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self._process = process
        self._reader = reader
        self._writer = writer
        self._is_killed = False

    @property
    def is_alive(self) -> bool:
        return not self._is_killed and not self._reader.at_eof()

    @classmethod
    async def spawn(cls) -> "_Child":
        ours, theirs = socket.socketpair()
        with theirs:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "forge.worker.child",
                str(theirs.fileno()),
                str(os.getpid()),
                pass_fds=[theirs.fileno()],
                stdin=asyncio.subprocess.DEVNULL,
                env=os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
            )
        reader, writer = await asyncio.open_connection(sock=ours, limit=2**26)
        return cls(process, reader, writer)

    async def run(self, order: dict[str, Any], context: JobContext) -> dict[str, Any] | None:
        """Send an order and return its answer; None when the process ended without one."""
        with suppress(ConnectionError):
            self._writer.write(json.dumps(order).encode() + b"\n")
            await self._writer.drain()
        while True:
            try:
                line = await self._reader.readline()
            except (ConnectionError, ValueError):
                return None
            if not line:
                return None
            message = json.loads(line)
            if message["note"]:
                context.add_note(**message["note"])
            if "completed" in message:
                context.completed = True
            if "outcome" in message:
                return message  # type: ignore[no-any-return]

    def kill(self) -> None:
        self._is_killed = True
        with suppress(ProcessLookupError):
            self._process.kill()

    async def end(self) -> str:
        """Wait for the process to be gone and say how it went."""
        self._writer.close()
        code = await self._process.wait()
        if code < 0:
            return f"signal {signal.Signals(-code).name}"
        return f"exit code {code}"

    async def close(self) -> None:
        self.kill()
        await self.end()


def _outcome(answer: dict[str, Any]) -> Outcome | Settled:
    match answer["outcome"]:
        case "returned":
            return Returned(answer["output"])
        case "snoozed":
            return Snoozed(timedelta(seconds=answer["delay"]))
        case "settled":
            return Settled(answer.get("output"))
    failure = answer["failure"]
    if failure["retry_after"] is not None:
        failure["retry_after"] = timedelta(seconds=failure["retry_after"])
    return Raised(Failure(**failure))


def _schedule(job: Job) -> str | None:
    if not isinstance(job, Run):
        return None
    return TypeAdapter(ScheduleRecord).dump_json(job.schedule).decode()


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, int | str):
        return value
    return value.total_seconds() if isinstance(value, timedelta) else str(value)


def _main_path(module: str) -> str | None:
    """Return the file of a script whose handlers live in `__main__`, for the child to load."""
    if module != "__main__":
        return None
    main = sys.modules["__main__"]
    return getattr(main, "__file__", None)
