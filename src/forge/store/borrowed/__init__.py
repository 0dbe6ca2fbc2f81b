"""Runs statements on a connection of the caller, inside the caller's transaction."""

from collections.abc import AsyncIterator, Coroutine, Iterable
from contextlib import asynccontextmanager, suppress
from itertools import islice
from typing import Any, Protocol, TypeVar
from uuid import UUID

from forge.core.errors import ForgeError, InvalidValue
from forge.core.new_job import NewJob
from forge.store import jobs
from forge.store.borrowed.kinds import borrow
from forge.store.bulk_copy import BLOCK, UTF8, as_copy, copy_terms, speak, time_after
from forge.store.notify import send
from forge.store.statement import Statement, load, nothing

T = TypeVar("T")


class JobBatch(Protocol):
    """Many jobs of one type: their common options, and the id and input of each."""

    @property
    def new_job(self) -> NewJob: ...

    @property
    def records(self) -> Iterable[tuple[bytes, str]]: ...


async def run_on(conn: Any, statement: Statement[T]) -> T:
    """Run a statement in the transaction of a borrowed connection."""
    return statement.read(await borrow(conn).fetch(statement.sql, statement.args))


async def copy_on(conn: Any, many: JobBatch) -> int:
    """Copy many jobs into the table in the transaction of a borrowed connection."""
    new_job, terms = many.new_job, await run_on(conn, copy_terms())
    if terms.is_refused:
        return await _insert_on(conn, many)
    if new_job.delay is not None:
        at = await run_on(conn, time_after(new_job.delay))
        new_job = new_job._replace(delay=None, scheduled_at=at)
    async with _in_utf8(conn, terms.encoding):
        return await borrow(conn).copy(as_copy(new_job, many.records))


@asynccontextmanager
async def _in_utf8(conn: Any, encoding: str) -> AsyncIterator[None]:
    """Set client_encoding to UTF-8 for a while; the rollback of a failure restores it."""
    if encoding == UTF8:
        yield
        return
    await run_on(conn, speak(UTF8))
    yield
    await run_on(conn, speak(encoding))


async def _insert_on(conn: Any, many: JobBatch) -> int:
    """Insert where row security rules out COPY, which only the owner of the tables may use."""
    records, count = iter(many.records), 0
    while block := list(islice(records, BLOCK)):
        new, inputs = zip(*block, strict=True)
        fresh = [UUID(bytes=id) for id in new]
        count += len(await run_on(conn, jobs.dispatch(fresh, list(inputs), many.new_job)))
    return count


async def notify_on(conn: Any, channel: str) -> None:
    """Send a notification that is delivered when the borrowed connection commits."""
    await run_on(conn, send(channel))


@asynccontextmanager
async def all_or_nothing(conn: Any) -> AsyncIterator[None]:
    """Use a savepoint, so that the caller can catch an error and commit the rest."""
    await run_on(conn, _SET)
    try:
        yield
    except BaseException:
        with suppress(ForgeError):  # a lost connection has nothing left to roll back
            await run_on(conn, _UNDO)
            await run_on(conn, _RELEASE)
        raise
    await run_on(conn, _RELEASE)


async def begin_part(conn: Any) -> None:
    """Set a savepoint that `end_part` ends."""
    await run_on(conn, _SET)


async def end_part(conn: Any) -> None:
    """Keep what was done since `begin_part`, or undo it if the transaction has failed since."""
    # Django notes by itself that a block failed which has no savepoint of its own.
    has_failed = bool(getattr(conn, "needs_rollback", False))
    if has_failed:
        conn.set_rollback(False)
    else:
        try:
            await run_on(conn, _RELEASE)
        except ForgeError:  # PostgreSQL accepts nothing but a rollback
            has_failed = True
    if has_failed:
        await run_on(conn, _UNDO)
        await run_on(conn, _RELEASE)


def without_loop(conn: Any, work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on a sync connection, without an event loop."""
    try:
        if borrow(conn).waits:
            raise InvalidValue(
                f"conn= is {type(conn).__name__}, which needs its event loop; call "
                "`await app.dispatch(…, conn=…)`, or give app.sync a connection that is not async"
            )
        work.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    finally:
        work.close()
    raise AssertionError("a connection without a loop never waits")


_SET: Statement[None] = Statement(load("savepoint/set"), (), nothing)
_UNDO: Statement[None] = Statement(load("savepoint/undo"), (), nothing)
_RELEASE: Statement[None] = Statement(load("savepoint/release"), (), nothing)
