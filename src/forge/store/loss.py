"""Whose fault a handler's error is: its own, or that of the database it met, by any driver."""

import re
from collections import deque
from collections.abc import Iterator
from types import FrameType
from typing import Any

import asyncpg
from asyncpg.pool import PoolConnectionProxy

from forge.core.errors import DatabaseUnavailable
from forge.core.signals import ClassifiedError
from forge.core.sqlstate import Blame
from forge.store.connecting import NoSuitableHost
from forge.store.fault import blame, driver_type, is_busy, is_conflict, is_lost, state_of

DEEPEST_CAUSE = 10


def blamed(error: BaseException, depth: int = DEEPEST_CAUSE) -> Blame:
    """Say who pays for what a handler raised: itself, or the platform if it raised that because of
    the database, or while it dealt with that."""
    seen: BaseException | None = error
    for left in range(depth, 0, -1):
        if seen is None or isinstance(seen, ClassifiedError):
            return Blame.HANDLER  # the handler knows better
        if isinstance(seen, BaseExceptionGroup):
            return _common([blamed(each, left - 1) for each in seen.exceptions])
        if (found := _blame(seen)) in EXCUSED:
            return found
        seen = seen.__cause__ or seen.__context__
    return Blame.HANDLER


def excuse_conflicts(error: BaseException) -> None:
    """Have an error that a conflict caused count as the platform's: what it rolled back carried the
    completion of a job, and is run again."""
    seen: BaseException | None = error
    for _ in range(DEEPEST_CAUSE):
        if is_conflict(seen):
            excuse(error)
        if seen is None:
            return
        seen = seen.__cause__ or seen.__context__


def excuse(error: BaseException) -> None:
    """Have an error count as the platform's."""
    setattr(error, _EXCUSED, True)


async def watch(connection: "asyncpg.Connection[Any]") -> None:
    """Remember whether a pool's connection ends while a handler holds it.

    asyncpg says of it afterwards what it says of one that was given back.
    """
    connection.add_termination_listener(_ended)


def _ended(connection: object) -> None:
    if isinstance(connection, PoolConnectionProxy):
        _ended_in_use.append(connection)


_ended_in_use: deque[object] = deque(maxlen=1000)


EXCUSED = (Blame.PLATFORM, Blame.PLATFORM_IF_READ_ONLY)
_EXCUSED = "_is_the_platforms"


def _common(found: list[Blame]) -> Blame:
    """A group is excused if all in it are."""
    if all(each in EXCUSED for each in found):
        return max(found, key=EXCUSED.index)
    return Blame.HANDLER


def _blame(error: BaseException) -> Blame:
    if getattr(error, _EXCUSED, False) or _is_gone(error):
        return Blame.PLATFORM
    return blame(error)


def _is_gone(error: BaseException) -> bool:
    """Whether the connection went away, by errors that carry no SQLSTATE."""
    if isinstance(error, DatabaseUnavailable):
        return is_lost(error.__cause__) or is_busy(error.__cause__)
    if isinstance(error, NoSuitableHost):
        return True
    if isinstance(error, OSError):
        return any(frame.f_code is asyncpg.connect.__code__ for frame in _frames(error))
    if isinstance(error, asyncpg.InternalClientError):
        # Between the server's last word and the end of the connection. A connection that two tasks
        # use at once raises an InterfaceError.
        return "cannot switch to state" in str(error)
    if isinstance(error, asyncpg.InterfaceError):
        held = [frame.f_locals.get("self") for frame in _frames(error)]
        return any(one is ended for one in held for ended in _ended_in_use)
    if isinstance(error, driver_type("psycopg", "OperationalError")) and not state_of(error):
        return _is_gone_for_psycopg(str(error))
    # SQLAlchemy has seen that the connection is of no more use, whatever its driver said.
    return isinstance(error, driver_type("sqlalchemy.exc", "DBAPIError")) and bool(
        error.connection_invalidated
    )


def _frames(error: BaseException) -> Iterator[FrameType]:
    step = error.__traceback__
    while step is not None:
        yield step.tb_frame
        step = step.tb_next


def _is_gone_for_psycopg(text: str) -> bool:
    # No code comes with an error of libpq, nor with what a server says before it lets one in.
    return bool((_NOT_NOW if "FATAL:" in text else _CUT_OFF).search(text))


_NOT_NOW = re.compile(
    "the database system is |too many (clients|connections)|remaining connection slots"
    "|terminating connection (?!due to (idle-in-)?transaction timeout)"
)
_CUT_OFF = re.compile(
    "Is the server running|closed the connection unexpectedly|has been closed unexpectedly"
    "|the connection is lost|EOF detected|Broken pipe|timeout expired"
    "|Connection (refused|reset|timed out)|No route to host|Network is unreachable"
)
