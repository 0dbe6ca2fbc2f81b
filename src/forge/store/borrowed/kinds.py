"""Finds the lender for the type of connection that is passed as conn=."""

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

from forge.core.errors import InvalidValue
from forge.store.borrowed.from_loop import FromLoop
from forge.store.borrowed.lender import Lender

# A caller with a connection of a library has imported that library; Forge imports none itself.
KINDS = {
    "asyncpg": "forge.store.borrowed.from_asyncpg",
    "psycopg": "forge.store.borrowed.from_psycopg",
    "sqlalchemy": "forge.store.borrowed.from_sqlalchemy",
    "django": "forge.store.borrowed.from_django",
}


def borrow(conn: Any) -> Lender:
    """Return the lender for a connection; raise InvalidValue for unsupported types."""
    if isinstance(conn, FromLoop):
        return conn
    for library, module in KINDS.items():
        if library in sys.modules:
            make: Callable[[Any], Lender | None] = import_module(module).borrow
            if (lender := make(conn)) is not None:
                return lender
    kind = type(conn)
    raise InvalidValue(
        f"conn= does not accept {kind.__module__}.{kind.__qualname__}; pass a connection of "
        "asyncpg, psycopg 3, SQLAlchemy (on asyncpg or psycopg 3) or Django (on psycopg 3); from a "
        "pool or an engine, take one connection first"
    )
