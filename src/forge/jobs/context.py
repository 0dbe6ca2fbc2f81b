"""What a handler receives: the job, the caller, the database, progress and checkpoints."""

import threading
from collections.abc import AsyncIterator, Awaitable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from uuid import UUID

from forge.core.attempt_log import LogLine
from forge.core.context import Auth, Context
from forge.core.equivalents import OF_A_CONTEXT, raise_equivalent
from forge.core.errors import StaleAttempt
from forge.core.job import Job
from forge.core.outcome import Completion
from forge.core.payload import decode, encode
from forge.jobs.attempt_log import LONGEST_MESSAGE, AttemptLog, storable
from forge.store import jobs
from forge.store.connection.blame import excuse, excuse_conflicts
from forge.store.connection.driver_errors import is_busy
from forge.store.jobs import AttemptUpdate
from forge.store.statement import Statement

if TYPE_CHECKING:
    from forge.store.connection.database import Connection, Pool

T = TypeVar("T")
CHECKPOINT_LIMIT = 65_536
_making_log = threading.Lock()


class HandlerRuntime(Protocol):
    """What a context needs of its runtime: the worker's loop, a thread, or a child process."""

    # How many bytes of JSON an output may have.
    output_limit: int
    # How many lines of a log are kept.
    log_lines: int

    def noted(self, context: "JobContext") -> None:
        """Write soon what the context has noted and logged."""

    def heartbeat(self, context: "JobContext") -> Awaitable[None]:
        """Record a heartbeat, or raise StaleAttempt."""

    async def run(self, statement: Statement[T]) -> T:
        """Run one statement."""

    def transaction(self) -> "AbstractAsyncContextManager[Connection[Any]]":
        """Open a transaction for Forge's own statements, on a connection of its own."""

    def completed(self, context: "JobContext") -> None:
        """Note that the handler completed its job itself: a lost lease no longer stops it."""

    @property
    def pool(self) -> "Pool[Any]":
        """The handlers' own connection pool."""

    @property
    def http(self) -> Any:
        """The handlers' HTTP client: an httpx.AsyncClient, in threads an httpx.Client."""


class JobContext(Context):
    """The job that a handler runs."""

    __slots__ = (
        "_checkpoint",
        "_is_announced",
        "_job",
        "_log",
        "_runtime",
        "cancelled",
        "completed",
        "has_noted",
        "is_committing",
        "lived_at",
        "note",
    )

    # Whether progress is written while the handler runs, for followers, or at its end.
    is_noted_as_it_goes = True
    # Whether log lines and progress messages are stored with the attempt.
    keeps_log = True

    def __init__(self, job: Job, runtime: HandlerRuntime) -> None:
        self._job = job
        self._runtime = runtime
        self._checkpoint = job.checkpoint
        # What is not written yet, whether the runtime knows of it, and whether there ever was any.
        self.note: AttemptUpdate | None = None
        self._is_announced = False
        self.has_noted = False
        # Made when it is used: most handlers write nothing.
        self._log: AttemptLog | None = None
        # When the last sign of life was.
        self.lived_at = 0.0
        # Whether the job was taken from this attempt, and whether the handler completed it itself.
        self.cancelled = False
        self.completed = False
        # Between the accepted completion and the answer to its commit.
        self.is_committing = False

    if not TYPE_CHECKING:  # type checkers would accept every attribute

        def __getattr__(self, name: str) -> Any:
            raise_equivalent("ctx", name, OF_A_CONTEXT)
            return object.__getattribute__(self, name)  # raises the original error

    @property
    def job(self) -> Job:
        """The claimed row, for Forge's own use."""
        return self._job

    @property
    def job_id(self) -> UUID:
        return self._job.id

    @property
    def lease(self) -> int:
        """The number of this claim: `(job_id, lease)` is the fence."""
        return self._job.lease

    @property
    def job_type(self) -> str:
        return self._job.type

    @property
    def attempt(self) -> int:
        """Which try this is; the first is 1."""
        return self._job.attempt

    @property
    def max_attempts(self) -> int:
        return self._job.max_attempts

    @property
    def tenant_id(self) -> int | None:
        """The tenant, if the job has one."""
        return self._job.tenant_id

    @property
    def correlation_id(self) -> UUID | None:
        """The id that ties it to other things, if it has one."""
        return self._job.correlation_id

    @property
    def auth(self) -> Auth:
        """Who dispatched it: a dict with the attributes `name`, `roles` and `tenant_id`.

        The server and mutations fill it in; from Python it is what `dispatch(…, auth={…})` said.
        Never None: where no caller was named (Python without `auth`, SQL, schedules) it is an empty
        `Auth` whose `is_system` is true.
        """
        return Auth() if self._job.auth is None else Auth(decode(self._job.auth))

    @property
    def traceparent(self) -> str | None:
        """The W3C trace context of the dispatch, to pass on to other services."""
        return self._job.traceparent

    @property
    def crashes(self) -> int:
        """How many runs ended without a result: their worker or process died, or was shut down.

        A run that its worker had claimed and may not have begun counts, too.
        """
        return self._job.crashes

    @property
    def runs(self) -> int:
        """Which run this is: `attempt + crashes`; snoozes count in neither."""
        return self._job.attempt + self._job.crashes

    @property
    def is_retry(self) -> bool:
        """Whether an earlier run may have done part of the work."""
        return self.runs > 1

    @property
    def is_last_attempt(self) -> bool:
        return not self._job.has_attempts

    @property
    def http(self) -> Any:
        """An HTTP client whose errors are classified; in threads an httpx.Client."""
        return self._runtime.http

    @property
    def db(self) -> "Pool[Any]":
        """The handlers' connection pool: `async with ctx.db.acquire() as conn`."""
        return self._runtime.pool

    @property
    def checkpoint(self) -> Any:
        """A small value that the next attempt finds, should this one fail."""
        return None if self._checkpoint is None else decode(self._checkpoint)

    @checkpoint.setter
    def checkpoint(self, value: Any) -> None:
        text = encode(value, what="the checkpoint", limit=CHECKPOINT_LIMIT)
        self._checkpoint = text
        self.add_note(checkpoint=text)

    def progress(self, percent: float, message: str | None = None) -> None:
        """Say how far the job is, in percent; cheap enough to call in every loop."""
        text = None if message is None else storable(str(message))[:LONGEST_MESSAGE]
        whole = int(max(0, min(100, percent)))
        if text is not None and self.keeps_log:
            self.log.add_progress(whole, text)
        self.add_note(percent=whole, message=text)

    @property
    def log(self) -> AttemptLog:
        """The log of this attempt: `ctx.log.info("imported", rows=500)`.

        Its last lines are stored, also if the worker is killed, and shown in the timeline of the
        job; each is an ordinary log record, too.
        """
        if self._log is None:
            with _making_log:
                if self._log is None:
                    room = self._runtime.log_lines if self.keeps_log else 0
                    self._log = AttemptLog(self._job.input, room, self._announce)
        return self._log

    def heartbeat(self) -> Awaitable[None]:
        """Say that the job lives; raises StaleAttempt when it is no longer this attempt's.

        In a thread it is called without `await`.
        """
        return self._runtime.heartbeat(self)

    @asynccontextmanager
    async def complete_in_transaction(self, output: Any = None) -> AsyncIterator["Connection[Any]"]:
        """Commit the handler's own writes and the completion together, or neither.

        The output is what is given here; without it, what the handler returns afterwards.
        """
        text = self._write(output)
        try:
            async with self.db.acquire() as conn, conn.transaction():
                yield conn
                if not await self._complete_on(conn, text):
                    raise self.stale("complete_in_transaction")
                self.is_committing = True
        except Exception as error:
            self.is_committing = False
            # At a stricter level of isolation any statement, and the commit, may fail of what other
            # transactions do, and the completion is one of those that may be to blame.
            excuse_conflicts(error)
            raise
        self.completed = True
        self._runtime.completed(self)

    async def _complete_on(self, conn: "Connection[Any]", output: str | None) -> bool:
        # A JSON null is yet to be replaced by what the handler returns.
        done = jobs.complete([Completion(self._job.id, self._job.lease, output or "null")])
        if await is_accepted(conn, done):
            return True
        # The start of a job that was fetched ahead may not be written yet.
        return await is_accepted(conn, jobs.start([self._job])) and await is_accepted(conn, done)

    def noting(self, note: AttemptUpdate) -> Statement[list[UUID]]:
        """Return the statement that writes a note down."""
        return jobs.note([note])

    def _write(self, output: Any) -> str | None:
        if output is None:
            return None
        return encode(output, what="the output", limit=self._runtime.output_limit)

    async def run(self, statement: Statement[T]) -> T:
        """Run one of Forge's own statements."""
        return await self._runtime.run(statement)

    def transaction(self) -> "AbstractAsyncContextManager[Connection[Any]]":
        """Open a transaction for several of Forge's own statements."""
        return self._runtime.transaction()

    def add_note(
        self,
        percent: int | None = None,
        message: str | None = None,
        checkpoint: str | None = None,
    ) -> None:
        """Write an update soon; None keeps what is there."""
        news = AttemptUpdate(self._job.id, self._job.lease, percent, message, checkpoint)
        note = self.note
        self.note = news if note is None else note.followed_by(news)
        self.has_noted = True
        if self.is_noted_as_it_goes:
            self._announce()

    def _announce(self) -> None:
        if not self._is_announced:
            self._is_announced = True
            self._runtime.noted(self)

    def take_note(self) -> AttemptUpdate | None:
        """Take what is not written yet, while the handler may be adding to it in its thread."""
        # In this order: what is added between the two is announced twice rather than never.
        self._is_announced = False
        note, self.note = self.note, None
        return note

    @property
    def has_logged(self) -> bool:
        """Whether there is or was anything to store in the log."""
        return self._log is not None

    @property
    def holds_lines(self) -> bool:
        """Whether a line waits until there is room for it."""
        return self._log is not None and self._log.holds_back

    def take_lines(self, *, is_end: bool = False) -> list[LogLine]:
        """Take the lines that are not stored yet."""
        return [] if self._log is None else self._log.take(is_end=is_end)

    def add_lines(self, lines: Iterable[LogLine]) -> None:
        """Add lines that a child process has kept."""
        self.log.receive(lines)
        self._announce()

    def put_back(self, note: AttemptUpdate) -> None:
        """Keep what was taken and could not be written."""
        kept = note.followed_by(self.take_note())
        self.add_note(kept.percent, kept.message, kept.checkpoint)

    def stale(self, act: str) -> StaleAttempt:
        return StaleAttempt(
            f"{act} of job {self._job.id} was refused: lease {self._job.lease} is over, the job "
            "was cancelled or given to another worker; stop here, nothing of this attempt counts"
        )


async def is_accepted(conn: "Connection[Any]", statement: Statement[list[UUID]]) -> bool:
    """Run a fenced statement on a handler's connection, and say whether the fence let it pass."""
    try:
        return bool(statement.read(await conn.fetch(statement.sql, *statement.args)))
    except Exception as error:
        if is_busy(error):  # a lock timeout, for example: the statement is not the handler's own
            excuse(error)
        raise
