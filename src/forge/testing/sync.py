"""The testing kit for plain tests, unittest and Django's TestCase: the same without `await`."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, TypeVar

from forge import testing
from forge.app import Forge
from forge.core.errors import ForgeError, InvalidValue
from forge.core.job import JobRecord
from forge.definitions.job import In, JobDefinition, Out
from forge.jobs.handle import JobHandle, Out_co
from forge.store.borrowed.threads import is_of_django, waits_for_loop
from forge.sync.handle import SyncHandle
from forge.testing.calls import Called, RecordingContext
from forge.testing.expectations import Job
from forge.testing.runs import DEFAULT_TIMEOUT, Summary, Timeout

T = TypeVar("T")


def run_all(
    app: Forge, *, conn: Any = None, timeout: Timeout = DEFAULT_TIMEOUT, raises: bool = True
) -> Summary:
    """Run every job and schedule that is due, and what they dispatch, until nothing is left."""
    return _wait(app, conn, lambda: testing.run_all(app, conn=conn, timeout=timeout, raises=raises))


def run_one(
    handle: SyncHandle[Out_co] | JobHandle[Out_co],
    *,
    conn: Any = None,
    timeout: Timeout = DEFAULT_TIMEOUT,
) -> Out_co:
    """Run this one job to its end, with retries at once, and return its result."""
    app = handle.app
    if not isinstance(app, Forge):
        raise InvalidValue(f"run_one takes the handle of a dispatched job, not {handle!r}")
    one: JobHandle[Out_co] = app.handle(handle.id)
    return _wait(app, conn, lambda: testing.run_one(one, conn=conn, timeout=timeout))


def advance(app: Forge, span: timedelta | str, *, conn: Any = None) -> None:
    """Let time pass for what is stored: delays, schedules, pauses and expiries come nearer."""
    _wait(app, conn, lambda: testing.advance(app, span, conn=conn))


def assert_dispatched(
    app: Forge,
    job: Job,
    input: Any = None,
    *,
    times: int | None = None,
    conn: Any = None,
    **columns: Any,
) -> list[JobRecord]:
    """Assert that a job was dispatched, exactly `times` if given; return the matching jobs."""
    return _wait(
        app,
        conn,
        lambda: testing.assert_dispatched(app, job, input, times=times, conn=conn, **columns),
    )


def assert_not_dispatched(
    app: Forge, job: Job, input: Any = None, *, conn: Any = None, **columns: Any
) -> None:
    """Assert that no such job was dispatched."""
    _wait(app, conn, lambda: testing.assert_not_dispatched(app, job, input, conn=conn, **columns))


def dispatched(app: Forge, job: Job | None = None, *, conn: Any = None) -> list[JobRecord]:
    """Return the jobs of a type, or all but built-in ones, oldest first, whatever their status."""
    return _wait(app, conn, lambda: testing.dispatched(app, job, conn=conn))


def call(
    job: JobDefinition[In, Out],
    input: In | dict[str, Any] | None = None,
    *,
    context: RecordingContext | None = None,
    **attributes: Any,
) -> Called[Out]:
    """Call a handler as a worker calls it, without a database, and return what it returned."""
    return asyncio.run(testing.call(job, input, context=context, **attributes))


def _wait(app: Forge, conn: Any, act: Callable[[], Awaitable[T]]) -> T:
    """Run the async function in an event loop of its own, and return its result."""

    async def run() -> T:
        async with _own_session(app, conn):
            return await act()

    if conn is not None and is_of_django(conn):
        from asgiref.sync import async_to_sync

        # Django's async code then runs in this thread, with the connection of this thread.
        found: T = async_to_sync(run)()
        return found
    _check(conn)
    return asyncio.run(run())


def _check(conn: Any) -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pass
    else:
        raise ForgeError(
            "forge.testing.sync would block the event loop that runs here; use the async functions "
            "of forge.testing, with `await`"
        )
    if conn is not None and waits_for_loop(conn):
        raise InvalidValue(
            f"conn= is {type(conn).__name__}, which needs its event loop; use the async functions "
            "of forge.testing, with `await`"
        )


@asynccontextmanager
async def _own_session(app: Forge, conn: Any) -> AsyncIterator[None]:
    """Give the app connections in this loop, which ends with the block."""
    if conn is not None:
        yield
        return
    session = app.sessions.make()
    with app.sessions.using(session):
        try:
            yield
        finally:
            await session.close()
