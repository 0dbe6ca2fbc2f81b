"""A process that runs one handler at a time for a worker.

Started as `python -m forge.worker.handlers.child FD PID`: the socket to the worker, and the
worker's pid.
"""

import asyncio
import ctypes
import importlib
import json
import logging
import os
import runpy
import signal
import socket
import sys
import threading
from collections.abc import Awaitable
from contextlib import AbstractAsyncContextManager, suppress
from datetime import datetime, timedelta
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

from pydantic import TypeAdapter

from forge.app import Forge
from forge.core.errors import ForgeError
from forge.core.job import Job
from forge.core.job_columns import COLUMNS
from forge.core.schedules.record import ScheduleRecord
from forge.core.schedules.run import make_run
from forge.core.signals import Snooze
from forge.definitions.error_classification import Classifier
from forge.definitions.job import JobDefinition
from forge.definitions.schedule import ScheduleDefinition
from forge.jobs.context import JobContext
from forge.store.connection.database import Connection, Database, Pool
from forge.store.connection.link import SessionOptions
from forge.store.connection.tenant import Callers
from forge.store.jobs import AttemptUpdate
from forge.store.statement import Statement
from forge.telemetry.logs.attempt_records import CURRENT_JOB, job_fields, mark_records
from forge.telemetry.logs.listener import RecordSender
from forge.telemetry.metrics.external_calls import CallMeter, measure_services
from forge.telemetry.metrics.registries import WorkerMetrics
from forge.worker.handlers.child_signals import leave_signals_to_the_worker
from forge.worker.handlers.django_connections import (
    close_stale_connections,
    close_stale_connections_of_async_code,
)
from forge.worker.handlers.schedule_context import ScheduleContext

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")
NOTE_INTERVAL = 0.05
HELD_INTERVAL = 0.5
NOTED = ("percent", "message", "checkpoint")
PR_SET_PDEATHSIG = 1
# The exit code of a child whose worker closed the socket or died.
WORKER_LEFT = 4


def main() -> None:
    """Serve orders until the worker closes the socket."""
    leave_signals_to_the_worker()
    _die_with_worker(int(sys.argv[2]))
    connection = socket.socket(fileno=int(sys.argv[1]))
    connection.set_inheritable(False)
    channel = Channel(connection)
    channel.send({"ready": True})
    while True:
        order = channel.receive()
        channel.send({"taken": True})
        asyncio.run(_serve(channel, order))


class Channel:
    """Lines of JSON to and from the worker."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._orders: SimpleQueue[dict[str, Any]] = SimpleQueue()
        self._lock = threading.Lock()
        self.pid = os.getpid()
        threading.Thread(target=self._read, name="forge-orders", daemon=True).start()

    def receive(self) -> dict[str, Any]:
        return self._orders.get()

    def _read(self) -> None:
        """Read orders, also while a handler runs: without a worker its result is useless."""
        with suppress(ConnectionError):
            for line in self._connection.makefile("rb"):
                self._orders.put(json.loads(line))
        if os.getpgrp() == os.getpid():
            os.killpg(0, signal.SIGKILL)  # also what the handler started
        os._exit(WORKER_LEFT)

    def send(self, message: dict[str, Any]) -> None:
        with self._lock:
            self._connection.sendall(json.dumps(message).encode() + b"\n")


class ChildRuntime:
    """HandlerRuntime of a handler in a child process."""

    def __init__(
        self,
        channel: Channel,
        database: Database,
        pool: "Pool[Any]",
        output_limit: int,
        log_lines: int,
    ) -> None:
        self._channel = channel
        self._database = database
        self._reporting = threading.Lock()
        self.pool = pool
        self.output_limit = output_limit
        self.log_lines = log_lines
        self.metrics = WorkerMetrics()
        self._http: httpx.AsyncClient | None = None

    @property
    def http(self) -> "httpx.AsyncClient":
        self._http = self._http or CallMeter(self.metrics).client()
        return self._http

    def noted(self, context: JobContext) -> None:
        # From a thread, since a plain function keeps the loop; delayed, since more may follow.
        self._report_in(NOTE_INTERVAL, context)

    def _report_in(self, seconds: float, context: JobContext) -> None:
        timer = threading.Timer(seconds, self.report, (context,))
        timer.daemon = True
        timer.start()

    def report(self, context: JobContext, answer: dict[str, Any] | None = None) -> None:
        """Send the progress to the worker, which writes it, and with the last of it the answer."""
        with self._reporting:  # nothing of this attempt may follow its answer
            note = context.take_note()
            lines = context.take_lines(is_end=answer is not None)
            if note is not None or lines or answer is not None:
                text = {} if note is None else {n: getattr(note, n) for n in NOTED}
                self._channel.send({"note": text, "lines": lines, **(answer or {})})
        if context.holds_lines:
            self._report_in(HELD_INTERVAL, context)

    def forward_logs(self, context: JobContext, level: int) -> None:
        """Log into the worker's log from now on, in the name of this attempt."""
        logging.getLogger("forge").setLevel(level)
        sender = RecordSender(self._channel.send, job_fields(context.job))
        logging.basicConfig(handlers=[sender], level=level, force=True)

    def heartbeat(self, context: JobContext) -> Awaitable[None]:
        return self._beat(context)

    async def _beat(self, context: JobContext) -> None:
        note = AttemptUpdate(context.job_id, context.lease, None, None, None)
        if not await self._database.run(context.noting(note)):
            raise context.stale("heartbeat")

    async def run(self, statement: Statement[T]) -> T:
        return await self._database.run(statement)

    def transaction(self) -> "AbstractAsyncContextManager[Connection[Any]]":
        return self._database.transaction()

    def completed(self, context: JobContext) -> None:
        self._channel.send({"note": {}, "completed": True})

    async def close(self) -> None:
        if self._http is not None:
            await self._http.aclose()
        await self._database.close()


async def _serve(channel: Channel, order: dict[str, Any]) -> None:
    database = Database(
        order["database_url"],
        session=SessionOptions(Callers(), pooler=order["pooler"]),
        pool_size=4,
        connect_timeout=timedelta(seconds=order["connect_timeout"]),
    )
    runtime = ChildRuntime(
        channel, database, await database.users(), order["output_limit"], order["log_lines"]
    )
    context = _context(order, runtime)
    answer = await _answer(order, context, runtime)
    close_stale_connections_of_async_code()
    if os.getpid() != channel.pid:
        os._exit(0)  # a copy of this process that the handler forked and let return
    await runtime.close()
    sys.stdout.flush()
    runtime.report(context, answer | {"metrics": runtime.metrics.drain()})


async def _answer(
    order: dict[str, Any], context: JobContext, runtime: ChildRuntime
) -> dict[str, Any]:
    classifier = Classifier()
    try:
        CURRENT_JOB.set(context.job)
        definition = _find(order)
        if order["log_level"] is not None:
            runtime.forward_logs(context, order["log_level"])
        mark_records()
        if isinstance(context, ScheduleContext) and isinstance(definition, ScheduleDefinition):
            context.definition = definition
        if isinstance(definition.app, Forge):
            classifier = definition.app.classifier
            runtime.metrics = definition.app.metrics.worker
            if not definition.app.events.other_listeners:
                measure_services(definition.app.events, runtime.metrics)
        close_stale_connections_of_async_code()
        output = await _call(definition, context, order["job"]["input"])
        text = definition.encode_output(output, limit=runtime.output_limit)
        return {"outcome": "settled" if context.completed else "returned", "output": text}
    except BaseException as error:
        if context.completed:
            return {"outcome": "settled"}
        try:
            return _failed(error, classifier)
        except Exception as fault:  # of the error itself, a Snooze that knows no delay for one
            return _failed(fault, classifier)


def _failed(error: BaseException, classifier: Classifier) -> dict[str, Any]:
    if isinstance(error, Snooze):
        return {"outcome": "snoozed", "delay": error.delay.total_seconds()}
    failure = classifier.failure(error)._asdict()
    if failure["retry_after"] is not None:
        failure["retry_after"] = failure["retry_after"].total_seconds()
    return {"outcome": "raised", "failure": failure}


async def _call(definition: JobDefinition[Any, Any], context: JobContext, text: str) -> Any:
    args = (context, definition.decode_input(text)) if definition.takes_input else (context,)
    invoke = partial(definition.handler, *args)
    if not asyncio.iscoroutinefunction(definition.handler):
        invoke = partial(_in_this_thread, invoke)
    middlewares = definition.app.middlewares if isinstance(definition.app, Forge) else []
    for wrap in reversed(middlewares):
        invoke = partial(wrap, context, invoke)
    return await invoke()


async def _in_this_thread(call: Any) -> Any:
    """Call a plain function as if there were no event loop, which it may refuse or start itself."""
    loop = asyncio.get_running_loop()
    asyncio._set_running_loop(None)
    close_stale_connections()
    try:
        return call()
    finally:
        close_stale_connections()
        asyncio._set_running_loop(loop)


def _find(order: dict[str, Any]) -> JobDefinition[Any, Any]:
    """Find a handler by the place where it was defined."""
    name, place = order["name"], f"{order['module']}.{order['qualname']}"
    try:
        if order["module"] == "__main__":
            found: Any = runpy.run_path(order["main"], run_name="__forge_child__")
            found = found[order["qualname"]]
        else:
            found = importlib.import_module(order["module"])
            for step in order["qualname"].split("."):
                found = getattr(found, step)
    except (ImportError, AttributeError, KeyError, TypeError, OSError) as error:
        raise ForgeError(
            f"a child process cannot find {name} as {place} ({error}); define the job at the top "
            "level of a module that can be imported"
        ) from error
    if not isinstance(found, JobDefinition):
        raise ForgeError(
            f"{place} is not the job {name}; leave the decorated function in its place"
        )
    return found


def _context(order: dict[str, Any], runtime: ChildRuntime) -> JobContext:
    if order["schedule"] is None:
        return JobContext(_job(order["job"]), runtime)
    record = TypeAdapter(ScheduleRecord).validate_json(order["schedule"])
    fields = order["job"]
    return ScheduleContext(make_run(record, fields["input"], fields["checkpoint"]), runtime)


def _job(fields: dict[str, Any]) -> Job:
    """Read a job from JSON, which has texts for ids and times, and seconds for durations."""
    return Job(**{name: _read(name, value) for name, value in fields.items()})


def _read(name: str, value: Any) -> Any:
    column = COLUMNS.get(name)
    match None if column is None or value is None else column.type:
        case "uuid":
            return UUID(value)
        case "interval":
            return timedelta(seconds=value)
        case "timestamptz":
            return datetime.fromisoformat(value)
        case _:
            return value


def _die_with_worker(pid: int) -> None:
    """A worker that was killed cannot end its children; the kernel can."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != pid:  # it died before the kernel knew
        sys.exit(f"the worker (process {pid}) is gone")


if __name__ == "__main__":
    main()
