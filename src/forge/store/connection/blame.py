"""Who is to blame for a handler's error: the handler, or the database, with any driver."""

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
from forge.store.connection.driver_errors import (
    blame,
    driver_type,
    is_busy,
    is_conflict,
    is_lost,
    state_of,
)
from forge.store.connection.opening import NoSuitableHost

MAX_CAUSE_DEPTH = 10


def blamed(error: BaseException, depth: int = MAX_CAUSE_DEPTH) -> Blame:
    """Return who is to blame for a handler's error.

    The platform is, if a database failure caused the error or occurred while it was handled.
    """
    seen: BaseException | None = error
    for left in range(depth, 0, -1):
        if seen is None or isinstance(seen, ClassifiedError):
            return Blame.HANDLER  # the handler classified it itself
        if isinstance(seen, BaseExceptionGroup):
            return _common([blamed(each, left - 1) for each in seen.exceptions])
        if (found := _blame(seen)) in EXCUSED:
            return found
        seen = seen.__cause__ or seen.__context__
    return Blame.HANDLER


def excuse_conflicts(error: BaseException) -> None:
    """Blame the platform for an error caused by a serialization conflict.

    The transaction it rolled back contained the completion of a job, which runs again.
    """
    seen: BaseException | None = error
    for _ in range(MAX_CAUSE_DEPTH):
        if is_conflict(seen):
            excuse(error)
        if seen is None:
            return
        seen = seen.__cause__ or seen.__context__


def excuse(error: BaseException) -> None:
    """Blame the platform for an error."""
    setattr(error, _EXCUSED, True)


async def watch(connection: "asyncpg.Connection[Any]") -> None:
    """Record if a pooled connection ends while a handler holds it.

    Afterwards asyncpg raises the same error as for a connection that was released.
    """
    connection.add_termination_listener(_ended)


def _ended(connection: object) -> None:
    if isinstance(connection, PoolConnectionProxy):
        _ended_in_use.append(connection)


_ended_in_use: deque[object] = deque(maxlen=1000)


EXCUSED = (Blame.PLATFORM, Blame.PLATFORM_IF_READ_ONLY)
_EXCUSED = "_is_the_platforms"


def _common(found: list[Blame]) -> Blame:
    """An exception group is excused if all its members are."""
    if all(each in EXCUSED for each in found):
        return max(found, key=EXCUSED.index)
    return Blame.HANDLER


def _blame(error: BaseException) -> Blame:
    if getattr(error, _EXCUSED, False) or _is_gone(error):
        return Blame.PLATFORM
    return blame(error)


def _is_gone(error: BaseException) -> bool:
    """Whether the connection was lost, for errors without a SQLSTATE."""
    if isinstance(error, DatabaseUnavailable):
        return is_lost(error.__cause__) or is_busy(error.__cause__)
    if isinstance(error, NoSuitableHost):
        return True
    if isinstance(error, OSError):
        return any(frame.f_code is asyncpg.connect.__code__ for frame in _frames(error))
    if isinstance(error, asyncpg.InternalClientError):
        # Raised between the server's last message and the end of the connection. A connection that
        # two tasks use at once raises an InterfaceError instead.
        return "cannot switch to state" in str(error)
    if isinstance(error, asyncpg.InterfaceError):
        held = [frame.f_locals.get("self") for frame in _frames(error)]
        return any(one is ended for one in held for ended in _ended_in_use)
    if isinstance(error, driver_type("psycopg", "OperationalError")) and not state_of(error):
        return _is_gone_for_psycopg(str(error))
    # SQLAlchemy marked the connection as unusable, whatever its driver raised.
    return isinstance(error, driver_type("sqlalchemy.exc", "DBAPIError")) and bool(
        error.connection_invalidated
    )


def _frames(error: BaseException) -> Iterator[FrameType]:
    step = error.__traceback__
    while step is not None:
        yield step.tb_frame
        step = step.tb_next


def _is_gone_for_psycopg(text: str) -> bool:
    # Errors of libpq have no SQLSTATE, nor do errors that the server sends before the login.
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
