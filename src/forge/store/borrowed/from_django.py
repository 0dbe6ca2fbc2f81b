"""Connections of Django on psycopg 3."""

from collections.abc import Sequence
from typing import Any

import psycopg

from forge.core.errors import InvalidValue
from forge.store.borrowed.from_psycopg import FromPsycopg
from forge.store.borrowed.lender import Lender, failed_transaction, no_transaction
from forge.store.bulk_copy import CopyData
from forge.store.statement import Rows


def borrow(conn: Any) -> Lender | None:
    is_django = hasattr(conn, "ensure_connection") and hasattr(conn, "in_atomic_block")
    return FromDjango(conn) if is_django and conn.vendor == "postgresql" else None


class FromDjango:
    """Runs statements on the driver's connection, inside `transaction.atomic()`."""

    waits = False

    def __init__(self, conn: Any) -> None:
        self._conn = conn

    async def fetch(self, sql: str, args: Sequence[Any]) -> Rows:
        return await self._lender().fetch(sql, args)

    async def copy(self, copy: CopyData) -> int:
        return await self._lender().copy(copy)

    def _lender(self) -> FromPsycopg:
        if self._conn.get_autocommit():
            raise no_transaction("`with transaction.atomic():`")
        if self._conn.needs_rollback:
            raise failed_transaction()
        self._conn.ensure_connection()
        driver = self._conn.connection
        if not isinstance(driver, psycopg.Connection):
            raise InvalidValue(
                f"conn= does not accept Django on {type(driver).__module__}; install psycopg 3 "
                '(pip install "forge-jobs[django]"), which Django then uses automatically'
            )
        return FromPsycopg(driver)
