"""call: a handler on its own, without a database, with a context that records what it does."""

import asyncio
from collections.abc import Awaitable
from datetime import UTC, datetime
from inspect import iscoroutinefunction
from typing import Any, Generic, NamedTuple, NoReturn, TypeVar
from uuid import uuid4

from forge.core.attempt_log import LogLine
from forge.core.errors import InvalidValue
from forge.core.job import Job
from forge.core.payload import HARD_LIMIT, decode, encode
from forge.core.suggestion import suggestion
from forge.definitions.job import In, JobDefinition, Out
from forge.definitions.schedule import ScheduleDefinition
from forge.jobs.context import JobContext
from forge.store.statement import Statement
from forge.worker.handlers.runtime import DONE

T = TypeVar("T")
LOG_LINES = 10_000
# What a context can be given, apart from what the job type determines.
ATTRIBUTES = (
    "attempt",
    "max_attempts",
    "crashes",
    "tenant_id",
    "correlation_id",
    "auth",
    "checkpoint",
    "traceparent",
)


class ProgressUpdate(NamedTuple):
    """One call of `ctx.progress`."""

    percent: float
    message: str | None = None


class RecordedLine(NamedTuple):
    """One line that the handler wrote with `ctx.log`."""

    level: str
    message: str
    fields: dict[str, Any]


class RecordingContext(JobContext):
    """The context of one attempt without a database: it keeps what the handler reports.

    `http` and `db` are what the handler finds in `ctx.http` and `ctx.db`, such as an
    `httpx.AsyncClient` with a `MockTransport`.
    """

    __slots__ = ("_recorder", "progress_log")

    def __init__(
        self,
        job: JobDefinition[Any, Any],
        input: Any = None,
        *,
        http: Any = None,
        db: Any = None,
        **attributes: Any,
    ) -> None:
        self._recorder = _Recorder(http, db)
        super().__init__(_job(job, input, attributes), self._recorder)
        self.progress_log: list[ProgressUpdate] = []

    @property
    def heartbeats(self) -> int:
        """How often the handler called `ctx.heartbeat`."""
        return self._recorder.heartbeats

    @property
    def log_lines(self) -> list[RecordedLine]:
        """What the handler wrote with `ctx.log`, with secrets redacted as they are stored."""
        taken = self.take_lines(is_end=True) if self.has_logged else []
        self._recorder.lines += [line for line in taken if line.kind == "log"]
        return [
            RecordedLine(line.level or "info", line.message, decode(line.fields or "{}"))
            for line in self._recorder.lines
        ]

    def progress(self, percent: float, message: str | None = None) -> None:
        self.progress_log.append(ProgressUpdate(percent, message))
        super().progress(percent, message)


class Called(NamedTuple, Generic[T]):
    """What a handler returned, as its result is stored and read, and its context."""

    output: T
    context: RecordingContext

    @property
    def progress_log(self) -> list[ProgressUpdate]:
        """Each call of `ctx.progress`."""
        return self.context.progress_log

    @property
    def log_lines(self) -> list[RecordedLine]:
        """What the handler wrote with `ctx.log`."""
        return self.context.log_lines

    @property
    def checkpoint(self) -> Any:
        """The checkpoint that the next attempt would find."""
        return self.context.checkpoint


async def call(
    job: JobDefinition[In, Out],
    input: In | dict[str, Any] | None = None,
    *,
    context: RecordingContext | None = None,
    **attributes: Any,
) -> Called[Out]:
    """Call a handler as a worker calls it, without a database, and return what it returned.

    The input and the output go through JSON. `attributes` are those of the context: attempt,
    tenant_id, auth, checkpoint, http … Pass a `context` of your own to look at it after an error.
    Middlewares and timeouts do not apply: they need `run_one`.
    """
    if not isinstance(job, JobDefinition) or isinstance(job, ScheduleDefinition):
        raise InvalidValue(f"call takes a job, not {job!r}; run a schedule with run_all")
    if context is None:
        context = RecordingContext(job, input, **attributes)
    elif attributes:
        raise InvalidValue("give attributes to the context or to call, not to both")
    args = (context, job.decode_input(context.job.input)) if job.takes_input else (context,)
    if iscoroutinefunction(job.handler):
        returned = await job.handler(*args)
    else:
        returned = await asyncio.to_thread(job.handler, *args)
    stored = job.encode_output(returned, limit=HARD_LIMIT)
    plain = None if stored is None else decode(stored)
    return Called(job.decode_output(plain, what=f"the output of {job.name}"), context)


class _Recorder:
    """The runtime of a recording context: it writes nothing."""

    output_limit = HARD_LIMIT
    log_lines = LOG_LINES

    def __init__(self, http: Any, db: Any) -> None:
        self._http, self._db = http, db
        self.heartbeats = 0
        self.lines: list[LogLine] = []

    def noted(self, context: JobContext) -> None:
        """Do nothing: the context keeps it."""

    def heartbeat(self, context: JobContext) -> Awaitable[None]:
        self.heartbeats += 1
        return DONE

    async def run(self, statement: Statement[T]) -> T:
        raise _needs_database("a statement of Forge")

    def transaction(self) -> NoReturn:
        raise _needs_database("a transaction of Forge")

    def completed(self, context: JobContext) -> None:
        """Do nothing: there is no attempt to complete."""

    @property
    def pool(self) -> Any:
        if self._db is None:
            raise _needs_database("ctx.db", "pass db= to call, or ")
        return self._db

    @property
    def http(self) -> Any:
        if self._http is None:
            raise InvalidValue(
                "ctx.http has no client here; pass one, such as "
                "call(…, http=httpx.AsyncClient(transport=httpx.MockTransport(answer)))"
            )
        return self._http


def _job(job: JobDefinition[Any, Any], input: Any, attributes: dict[str, Any]) -> Job:
    """Return the row that a worker would have claimed."""
    for name in attributes:
        if name not in ATTRIBUTES:
            raise InvalidValue(f"a context has no {name!r}; {suggestion(name, ATTRIBUTES, 'it')}")
    kind = job.job_type
    given = attributes | {
        name: encode(attributes[name], what=name)
        for name in ("auth", "checkpoint")
        if attributes.get(name) is not None
    }
    attempt = given.get("attempt", 1)
    values: dict[str, Any] = {
        "id": uuid4(),
        "lease": attempt,
        "type": job.name,
        "input": job.encode_input(input),
        "attempt": attempt,
        "max_attempts": max(kind.max_attempts, attempt),
        "due": datetime.now(UTC).timestamp(),
        "crashes": 0,
        "lone_crashes": 0,
        "is_suspect": False,
        "queue": kind.queue,
        "worker_capability": kind.worker_capability,
        "priority": kind.priority,
        "category": kind.category,
    }
    return Job(**values | given)


def _needs_database(what: str, instead: str = "") -> InvalidValue:
    return InvalidValue(f"{what} needs a database, which call has not; {instead}use run_one")
