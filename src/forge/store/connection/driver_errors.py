"""What a driver error means, by the SQLSTATE table in core/sqlstate."""

import asyncio
import errno
import sys
from typing import Any

import asyncpg

from forge.core.errors import (
    AccessRefused,
    DatabaseUnavailable,
    ForgeError,
    SchemaMissing,
    StatementRefused,
)
from forge.core.sqlstate import CONFLICTS, REFUSALS, Blame, Remedy, is_locked_out, judge
from forge.store.connection.opening import NoHost, NoSuitableHost

# Raised by a connection that is no longer usable, without an answer from the server.
BROKEN = (
    OSError,
    asyncio.TimeoutError,
    asyncpg.InterfaceError,
    # Raised by asyncpg on a connection that died between two messages.
    asyncpg.InternalClientError,
)
DRIVER_ERRORS = (*BROKEN, asyncpg.PostgresError)
TOO_MANY_CONNECTIONS = "53300"
INSUFFICIENT_PRIVILEGE = "42501"


def state_of(error: BaseException | None) -> str:
    """Return the SQLSTATE of an error of any supported driver; "" if it has none."""
    if isinstance(error, driver_type("sqlalchemy.exc", "DBAPIError")):
        error = error.orig
    elif isinstance(error, driver_type("django.db", "Error")):
        error = error.__cause__
    elif not isinstance(error, asyncpg.PostgresError | driver_type("psycopg", "Error")):
        return ""
    return getattr(error, "sqlstate", None) or ""


def driver_type(module: str, name: str) -> Any:
    """Return an error type of a driver, or one that matches nothing if it is not imported."""
    return getattr(sys.modules.get(module), name, _NoDriver)


class _NoDriver(Exception):
    """Stands in for the errors of a driver that is not imported; never raised."""


def is_lost(error: BaseException | None) -> bool:
    """Whether the asyncpg connection that raised this error is unusable."""
    if isinstance(error, asyncpg.PostgresError):
        return judge(state_of(error)).remedy is Remedy.RECONNECT
    return isinstance(error, BROKEN)


def is_busy(error: BaseException | None) -> bool:
    """Whether the same statement may succeed later on the same connection."""
    return judge(state_of(error)).remedy is Remedy.RETRY


def is_full(error: BaseException | None) -> bool:
    """Whether the server, or the role or database, has no connection left."""
    return state_of(error) == TOO_MANY_CONNECTIONS


def is_denied(error: BaseException | None) -> bool:
    """Whether the login lacks a grant: policies and functions refuse with the same SQLSTATE."""
    return state_of(error) == INSUFFICIENT_PRIVILEGE and "permission denied for" in str(error)


def is_conflict(error: BaseException | None) -> bool:
    """Whether the same transaction may succeed when it is run again."""
    return state_of(error) in CONFLICTS


def is_refusal(error: BaseException | None) -> bool:
    """Whether the server or its host answered that it accepts no writes at the moment.

    With several hosts all of them must refuse: a silent one may still accept other clients.
    """
    if isinstance(error, NoHost):
        return all(is_refusal(each) for each in error.errors)
    if isinstance(error, OSError):
        return isinstance(error, ConnectionRefusedError | FileNotFoundError) or _all_refuse(error)
    return state_of(error) in REFUSALS


def blame(error: BaseException) -> Blame:
    """Return who is to blame for an error of a user's own statement."""
    return judge(state_of(error)).blame


def translated(error: BaseException, place: str) -> ForgeError:
    """Return the ForgeError for a driver error of one of Forge's own statements."""
    return unavailable(error, place) if is_lost(error) else refused(error)


def unavailable(error: BaseException, place: str) -> DatabaseUnavailable:
    """Return a DatabaseUnavailable that says why there is no connection, and to what."""
    reason = str(error) or type(error).__name__
    if _is_locked_out(error):
        return AccessRefused(
            f"the database {place} rejected the login: {reason}; create the missing role or "
            "database, or correct FORGE_DATABASE_URL or [database] url"
        )
    if isinstance(error, NoSuitableHost):
        return DatabaseUnavailable(
            f"{reason}; promote a standby, or correct FORGE_DATABASE_URL or [database] url"
        )
    if isinstance(error, asyncpg.ReadOnlySQLTransactionError):
        return read_only(f": {reason}")
    if is_full(error):
        return DatabaseUnavailable(
            f"the database {place} has no connection left: {reason}; raise max_connections or the "
            "limit of the role, or use fewer connections"
        )
    return DatabaseUnavailable(
        f"the database {place} does not answer: {reason}; check that it runs and that "
        "FORGE_DATABASE_URL or [database] url names it"
    )


def read_only(reason: str = "") -> DatabaseUnavailable:
    """Return the error for a database that accepts no writes."""
    return DatabaseUnavailable(
        f"the database is read-only{reason}; it is a standby, or was set read-only. Promote it, or "
        "name the primary in FORGE_DATABASE_URL or [database] url"
    )


def refused(error: BaseException) -> ForgeError:
    """Return the ForgeError for an error response: busy, not migrated, or refused."""
    remedy = judge(state_of(error)).remedy
    if remedy is Remedy.RETRY:
        return DatabaseUnavailable(f"the database is busy: {error}; try again")
    if remedy is Remedy.MIGRATE:
        return SchemaMissing(f"{error}; run `forge migrate` on this database")
    return StatementRefused(
        f"the database refused: {error}", blames_value=remedy is Remedy.REFUSE_VALUE
    )


def _all_refuse(error: OSError) -> bool:
    """Whether every address of one host refused; asyncio joins their errors into one message."""
    text = str(error)
    refusals = text.count(f"[Errno {errno.ECONNREFUSED}]")
    return text.startswith("Multiple exceptions") and text.count("[Errno ") == refusals


def _is_locked_out(error: BaseException) -> bool:
    if isinstance(error, asyncpg.PostgresError):
        return is_locked_out(state_of(error))
    return isinstance(error, asyncpg.exceptions.ClientConfigurationError)
