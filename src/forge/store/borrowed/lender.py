"""The lender protocol: the caller's connection as Forge's statements use it."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from forge.core.errors import DatabaseUnavailable, ForgeError, SchemaMissing
from forge.store.bulk_copy import CopyData
from forge.store.statement import Rows

COPY = "copy forge_jobs ({columns}) from stdin with (format binary)"
_FAILED_TRANSACTION = "25P02"
_UNDEFINED_TABLE = "42P01"


class Lender(Protocol):
    """Runs statements on a connection; raises before it writes if that is not in a transaction."""

    # Whether its calls await an event loop; those of a sync connection never do.
    waits: bool

    async def fetch(self, sql: str, args: Sequence[Any]) -> Rows: ...

    async def copy(self, copy: CopyData) -> int: ...


@contextmanager
def explained(is_closed: Callable[[], bool]) -> Iterator[None]:
    """Turn errors of the connection's state into ForgeErrors that say what to do.

    Other errors pass unchanged: the caller handles its driver's errors, for example by retrying
    the transaction after a serialization failure.
    """
    try:
        yield
    except ForgeError:
        raise
    except Exception as error:
        state = getattr(error, "sqlstate", None)
        if state == _FAILED_TRANSACTION:
            raise failed_transaction() from error
        if state == _UNDEFINED_TABLE:
            raise SchemaMissing(f"{error}; run `forge migrate` on this database") from error
        if is_closed():
            raise DatabaseUnavailable(
                f"conn= was lost: {error}; its transaction was rolled back: begin it again on a "
                "new connection"
            ) from error
        raise


def closed_connection() -> ForgeError:
    return DatabaseUnavailable("conn= is closed; open a connection, or omit conn=")


def failed_transaction() -> ForgeError:
    return ForgeError(
        "the transaction of conn= has already failed; roll it back, then dispatch in a new one"
    )


def no_transaction(begin: str) -> ForgeError:
    return ForgeError(
        "conn= is not in a transaction, so the job would not be committed together with your "
        f"writes; begin one with {begin}, or omit conn="
    )
