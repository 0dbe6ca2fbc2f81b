"""Whether an error is that a database went away, in the words of whichever driver met it."""

import re
import sys
from collections import deque
from collections.abc import Iterator
from types import FrameType
from typing import Any

import asyncpg
from asyncpg.pool import PoolConnectionProxy

from forge.core.errors import DatabaseUnavailable
from forge.core.signals import ClassifiedError
from forge.store.link import LOST

DEEPEST_CAUSE = 10
# What asyncpg says of a connection that the server ended, or has begun to.
GONE = (
    asyncpg.PostgresConnectionError,
    asyncpg.exceptions.AdminShutdownError,
    asyncpg.exceptions.CrashShutdownError,
    asyncpg.exceptions.CannotConnectNowError,
)


def is_loss(error: BaseException, depth: int = DEEPEST_CAUSE) -> bool:
    """Whether it is that a database went away, or was raised while that was being dealt with."""
    seen: BaseException | None = error
    for left in range(depth, 0, -1):
        if seen is None or isinstance(seen, ClassifiedError):
            return False  # the handler knows better
        if isinstance(seen, BaseExceptionGroup):
            return all(is_loss(each, left - 1) for each in seen.exceptions)
        if _is_gone(seen):
            return True
        seen = seen.__cause__ or seen.__context__
    return False


async def watch(connection: "asyncpg.Connection[Any]") -> None:
    """Remember whether a pool's connection ends while somebody holds it.

    asyncpg says of it afterwards what it says of one that was given back.
    """
    connection.add_termination_listener(_ended)


def _ended(connection: object) -> None:
    if isinstance(connection, PoolConnectionProxy):
        _ended_in_use.append(connection)


_ended_in_use: deque[object] = deque(maxlen=1000)


def _is_gone(error: BaseException) -> bool:
    if isinstance(error, GONE):
        return True
    if isinstance(error, DatabaseUnavailable):
        return isinstance(error.__cause__, LOST)
    if isinstance(error, OSError):
        return any(frame.f_code is asyncpg.connect.__code__ for frame in _frames(error))
    if isinstance(error, asyncpg.InterfaceError):
        held = [frame.f_locals.get("self") for frame in _frames(error)]
        return any(one is ended for one in held for ended in _ended_in_use)
    if isinstance(error, _kind("psycopg", "OperationalError")):
        return _is_gone_for_psycopg(error)
    # SQLAlchemy has seen that the connection is of no more use, whatever its driver said.
    return isinstance(error, _kind("sqlalchemy.exc", "DBAPIError")) and bool(
        error.connection_invalidated
    )


def _kind(module: str, name: str) -> Any:
    """Return a type of a driver, which nobody met who has not imported it."""
    return getattr(sys.modules.get(module), name, ())


def _frames(error: BaseException) -> Iterator[FrameType]:
    step = error.__traceback__
    while step is not None:
        yield step.tb_frame
        step = step.tb_next


def _is_gone_for_psycopg(error: Any) -> bool:
    if error.sqlstate is not None:
        return bool(_GONE_STATES.match(error.sqlstate))
    # No code comes with an error of libpq, nor with what a server says before it lets one in.
    text = str(error)
    return bool((_NOT_NOW if "FATAL:" in text else _CUT_OFF).search(text))


_GONE_STATES = re.compile("08|57P0[123]")
_NOT_NOW = re.compile("the database system is |terminating connection ")
_CUT_OFF = re.compile(
    "Is the server running|closed the connection unexpectedly|has been closed unexpectedly"
    "|the connection is lost|EOF detected|Broken pipe|timeout expired"
    "|Connection (refused|reset|timed out)|No route to host|Network is unreachable"
)
