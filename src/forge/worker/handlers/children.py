"""Handlers in a process of their own: for those that want it, and for suspects."""

import asyncio
import logging
import os
import sys
from collections import deque
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from typing import Any, NamedTuple, Self

from forge.app import Forge
from forge.core.job import Job
from forge.core.outcome import Crashed, Failure, Outcome, Raised, Returned, Settled, Snoozed
from forge.worker.attempts import NEVER, Attempt
from forge.worker.handlers.child_logs import our_handler
from forge.worker.handlers.child_process import ChildNotStarted, ChildProcess
from forge.worker.handlers.process_groups import ProcessGroups

MAX_IDLE = 4
# More of them would start no sooner, and the children that are ready by then are used again.
MAX_STARTING = max(2, os.cpu_count() or 2)


class HandlerPlaces(NamedTuple):
    """Where the handlers run that are not coroutines on the worker's loop."""

    threads: Executor
    children: "Children"

    @classmethod
    def of(cls, app: Forge, database_url: str) -> Self:
        """Return a thread for each slot, and child processes."""
        threads = ThreadPoolExecutor(app.config.worker.max_concurrent, "forge-handler")
        return cls(threads, Children(app, database_url))


class Children:
    """Child processes, each running one attempt at a time; idle ones are kept for the next."""

    def __init__(self, app: Forge, database_url: str) -> None:
        self._app = app
        self._url = database_url
        self._groups = ProcessGroups()
        self._idle: list[ChildProcess] = []
        self._waiting: deque[asyncio.Future[ChildProcess]] = deque()
        self._starting: set[asyncio.Task[None]] = set()
        self._starts = asyncio.Semaphore(MAX_STARTING)
        self._closing: set[asyncio.Future[None]] = set()

    async def run(self, attempt: Attempt) -> Outcome | Settled:
        """Run an attempt in a child, and see to it that the child ends when it should."""
        # All that idle may have died unnoticed; the next one is fresh.
        for _ in range(MAX_IDLE + 1):
            outcome = await self._run(attempt)
            if outcome is not None:
                return outcome
        return Crashed("child processes ended before they read their orders")

    async def _run(self, attempt: Attempt) -> Outcome | Settled | None:
        """Run an attempt in a child; None when that ended before it read the order."""
        attempt.deadline = NEVER  # a timeout is for the handler, not for the wait for a child
        try:
            child = await self._child_for(attempt.job)
        except ChildNotStarted as error:
            return Raised(Failure("forge.ChildNotStarted", str(error), "", is_loss=True))
        finally:
            attempt.begin(asyncio.get_running_loop().time())
        attempt.interrupt_by(lambda why: child.kill())
        if attempt.stop is not None:
            child.kill()
        try:
            answer = await child.run(self._order(attempt), attempt)
        except BaseException:
            child.kill()
            raise
        if answer is None:
            child.kill()  # the socket may have ended before the process
            ended = await child.end()
            return Crashed(ended) if child.has_taken or attempt.stop is not None else None
        attempt.interrupt_by_cancelling()  # the child may run another attempt from now on
        self._give_back(child)
        self._app.metrics.worker.absorb(answer["metrics"])
        return _outcome(answer)

    async def close(self) -> None:
        for task in self._starting:
            task.cancel()
        while self._starting:
            await asyncio.wait(self._starting)
        idle, self._idle = self._idle, []
        for child in idle:
            await child.close()
        while self._closing:
            await asyncio.wait(self._closing)
        await self._groups.close()

    async def _child_for(self, job: Job) -> ChildProcess:
        """Return a child that is ready, a fresh one where another death would bury the job.

        A child that served others before might die of what those left behind.
        """
        if job.lone_crashes + 1 >= self._app.config.worker.crash_limit:
            async with self._starts:
                return await ChildProcess.start(self._groups)
        while self._idle:
            # The death of one that idled is not the fault of this job.
            if (child := self._idle.pop()).is_alive:
                return child
            await child.close()
        return await self._next_ready()

    async def _next_ready(self) -> ChildProcess:
        """Wait for a child, whichever is ready first: one that starts, or one that is done."""
        waiter: asyncio.Future[ChildProcess] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        self._start_more()
        try:
            return await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
                self._give_back(waiter.result())
            with suppress(ValueError):
                self._waiting.remove(waiter)
            raise

    def _start_more(self) -> None:
        while len(self._starting) < min(len(self._waiting), MAX_STARTING):
            task = asyncio.ensure_future(self._start())
            self._starting.add(task)
            task.add_done_callback(self._started)

    def _started(self, task: "asyncio.Task[None]") -> None:
        self._starting.discard(task)
        if not task.cancelled():
            self._start_more()

    async def _start(self) -> None:
        try:
            async with self._starts:
                child = await ChildProcess.start(self._groups)
        except Exception as error:
            if waiter := self._next_waiter():
                waiter.set_exception(error)
            return
        self._give_back(child)

    def _give_back(self, child: ChildProcess) -> None:
        """Hand a child to the attempt that waits longest, or keep it for the next."""
        if child.is_alive and (waiter := self._next_waiter()):
            waiter.set_result(child)
        elif child.is_alive and len(self._idle) < MAX_IDLE:
            self._idle.append(child)
        else:
            closing = asyncio.ensure_future(child.close())
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)

    def _next_waiter(self) -> "asyncio.Future[ChildProcess] | None":
        while self._waiting:
            if not (waiter := self._waiting.popleft()).done():
                return waiter
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
            "log_lines": self._app.config.worker.log_lines,
            "job": {name: _plain(value) for name, value in job.items()},
            "schedule": attempt.source.schedule_json(attempt.job),
            # The level of Forge's own logger; None where the app sets up logging by itself.
            "log_level": logging.getLogger("forge").level if our_handler() else None,
        }


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


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, int | float | str | list):
        return value
    return value.total_seconds() if isinstance(value, timedelta) else str(value)


def _main_path(module: str) -> str | None:
    """Return the file of a script whose handlers live in `__main__`, for the child to load."""
    if module != "__main__":
        return None
    main = sys.modules["__main__"]
    return getattr(main, "__file__", None)
