"""A lender: somebody else's connection, as Forge's statements see it."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from forge.core.errors import DatabaseUnavailable, ForgeError, SchemaMissing
from forge.store.bulk import Copy
from forge.store.statement import Rows

COPY = "copy forge_jobs ({columns}) from stdin with (format binary)"
_FAILED_TRANSACTION = "25P02"
_UNDEFINED_TABLE = "42P01"


class Lender(Protocol):
    """Each call raises before it writes when the connection is in no state to be written on."""

    # Whether its calls wait for an event loop; those of a sync connection never do.
    waits: bool

    async def fetch(self, sql: str, args: Sequence[Any]) -> Rows: ...

    async def copy(self, copy: Copy) -> int: ...


@contextmanager
def explained(is_closed: Callable[[], bool]) -> Iterator[None]:
    """Say what to do about errors of the connection's own.

    The others pass as they are: whoever runs the transaction knows the errors of their driver, and
    may begin it again at a serialization failure.
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
                f"conn= was lost: {error}; its transaction is gone: begin it again on a new "
                "connection"
            ) from error
        raise


def closed_connection() -> ForgeError:
    return DatabaseUnavailable("conn= is closed; open a connection, or leave conn= out")


def failed_transaction() -> ForgeError:
    return ForgeError(
        "the transaction of conn= has failed before; roll it back, then dispatch in a new one"
    )


def no_transaction(begin: str) -> ForgeError:
    return ForgeError(
        "conn= is in no transaction, so that nothing would tie the job to what you write; "
        f"begin one with {begin}, or leave conn= out"
    )
