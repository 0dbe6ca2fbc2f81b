"""run_all, run_one and advance: the jobs of an app as its worker runs them, when a test says so."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from forge.app import Forge
from forge.core.duration import parse_duration
from forge.core.errors import ForgeError, InvalidValue, JobFailed
from forge.core.job import JobRecord
from forge.core.lifecycle import Status
from forge.jobs.handle import JobHandle, Out_co
from forge.store import test_runs
from forge.testing.attempt_memory import EndedAttempt
from forge.testing.engine import Engine

Timeout = float | timedelta | str
DEFAULT_TIMEOUT = "30s"
# The outcomes after which nothing but a person, or the next tick, runs it again.
FAILED = ("failed", "dead_letter", "crashed")


class NotIdle(ForgeError, TimeoutError):
    """Jobs still ran, or new ones still came, when the timeout of run_all or run_one was over."""


@dataclass(frozen=True)
class Summary:
    """What run_all ran: every attempt, in the order in which they ended."""

    attempts: tuple[EndedAttempt, ...]

    def count(self, outcome: str, type: str | None = None) -> int:
        """Count attempts by their outcome, and by the type of the job."""
        return sum(1 for each in self._of(type) if each.outcome == outcome)

    @property
    def completed(self) -> int:
        """How many jobs and runs of schedules were completed."""
        return self.count("completed")

    @property
    def failed(self) -> int:
        """How many ended failed or dead-lettered."""
        return len(self.failures)

    @property
    def retried(self) -> int:
        """How many attempts failed and were followed by another one."""
        return self.count("retry")

    @property
    def failures(self) -> tuple[EndedAttempt, ...]:
        """The last attempts of what ended failed or dead-lettered, with their errors."""
        return tuple(each for each in self.attempts if each.outcome in FAILED)

    def _of(self, type: str | None) -> Iterator[EndedAttempt]:
        return (each for each in self.attempts if type is None or each.type == type)

    def __str__(self) -> str:
        counted = Counter((each.outcome, each.type) for each in self.attempts)
        parts = [f"{type} {outcome} {n}×" for (outcome, type), n in counted.items()]
        return ", ".join(parts) or "nothing ran"


async def run_all(
    app: Forge, *, conn: Any = None, timeout: Timeout = DEFAULT_TIMEOUT, raises: bool = True
) -> Summary:
    """Run every job and schedule that is due, and what they dispatch, until nothing is left.

    Retries run at once. When a job has ended failed or dead-lettered, its error is raised at the
    end, unless `raises` is false. With `conn` all of it happens on that connection, in savepoints.
    """
    async with _engine(app, conn) as engine:
        deadline = _Deadline(timeout, engine.memory.faults)
        while True:
            was_busy = engine.is_busy
            if await engine.claim_due():
                continue
            if was_busy or engine.is_busy:
                await engine.wait()
            elif await engine.retry_now():
                continue
            elif elsewhere := await engine.held_elsewhere():
                await engine.wait()
                deadline.check(elsewhere, "in another worker")
            else:
                break
            deadline.check(engine.running(), "here")
    summary = Summary(tuple(engine.memory.attempts))
    if raises and summary.failures:
        raise _with_notes(summary.failures)
    return summary


async def run_one(
    handle: JobHandle[Out_co], *, conn: Any = None, timeout: Timeout = DEFAULT_TIMEOUT
) -> Out_co:
    """Run this one job to its end, with retries at once, and return its result.

    The error of a job that ends failed or dead-lettered is raised; jobs that it dispatches stay.
    """
    app = handle.app
    if not isinstance(app, Forge):
        raise InvalidValue(f"run_one takes the handle of a dispatched job, not {handle!r}")
    async with _engine(app, conn) as engine:
        deadline = _Deadline(timeout, engine.memory.faults)
        while not (record := await app.get(handle.id)).is_final:
            is_claimed = await engine.claim_one(record)
            while engine.is_busy:
                await engine.wait()
                deadline.check(engine.running(), "here")
            if not is_claimed and not await engine.retry_now(handle.id):
                raise await _not_runnable(app, record)
        ended = [each for each in engine.memory.attempts if each.job_id == handle.id]
    if ended and ended[-1].error is not None and record.status is not Status.COMPLETED:
        raise _with_notes(ended[-1:])
    result: Out_co = _result(app, record)
    return result


async def advance(app: Forge, span: timedelta | str, *, conn: Any = None) -> None:
    """Let time pass for what is stored: delays, schedules, pauses and expiries come nearer."""
    moved = test_runs.advance(parse_duration(span, what="span"))
    async with acting(app, conn):
        await app.sessions.run(moved)


@asynccontextmanager
async def acting(app: Forge, conn: Any) -> AsyncIterator[None]:
    """Let an app use `conn` for all that it does in the block, unless that is None."""
    if conn is None:
        yield
        return
    session = app.sessions.make_on(conn)
    with app.sessions.using(session):
        try:
            yield
        finally:
            await session.close()


@asynccontextmanager
async def _engine(app: Forge, conn: Any) -> AsyncIterator[Engine]:
    if not isinstance(app, Forge):
        raise InvalidValue(f"it takes a forge.Forge, not {app!r}")
    async with acting(app, conn):
        database = await (await app.session()).database()
        async with Engine(app, database, await database.users()) as engine:
            yield engine


class _Deadline:
    """When a test has waited long enough, or waits in vain."""

    def __init__(self, timeout: Timeout, faults: list[str]) -> None:
        self._faults = faults
        span = timedelta(seconds=timeout) if isinstance(timeout, int | float) else timeout
        self._seconds = parse_duration(span).total_seconds()
        self._loop = asyncio.get_running_loop()
        self._end = self._loop.time() + self._seconds

    def check(self, running: list[str], where: str) -> None:
        if self._faults:
            raise ForgeError(f"jobs cannot be run here: {'; '.join(self._faults)}")
        if self._loop.time() < self._end:
            return
        names = ", ".join(f"{name} ({n})" for name, n in Counter(running).items())
        what = f"{names} still ran {where}" if names else "new jobs still came"
        raise NotIdle(
            f"not idle after {self._seconds:g} s: {what}; what ran was released. Raise timeout=, "
            "or look for a handler that waits for another job or for the test"
        )


async def _not_runnable(app: Forge, record: JobRecord) -> ForgeError:
    why = await app.why(record.id)
    return ForgeError(
        f"{record.job_type} {record.id} cannot run now: {why.message} To let time pass, "
        'write `await advance(app, "2h")`.'
    )


def _with_notes(failures: Any) -> BaseException:
    first, *others = failures
    error: BaseException = first.error or JobFailed(str(first))
    notes = getattr(error, "__notes__", [])
    for note in (f"in {first}", *(f"also {each}: {each.error!r}" for each in others)):
        if note not in notes:
            error.add_note(note)
    return error


def _result(app: Forge, record: JobRecord) -> Any:
    if record.status is not Status.COMPLETED:
        reason = record.last_error or "no error was recorded"
        raise JobFailed(f"{record.job_type} {record.id} ended as {record.status}: {reason}")
    definition = app.definitions.get(record.job_type)
    if definition is None:
        return record.output
    return definition.decode_output(record.output, what=f"the output of {record.job_type}")
