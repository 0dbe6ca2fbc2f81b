"""Which migrations a database has."""

from functools import cache

from forge.core.errors import SchemaMissing
from forge.store.migrate import all_migrations
from forge.store.statement import Rows, Statement, load


def check() -> Statement[None]:
    """Raise SchemaMissing where a migration that this version needs is not there."""
    return Statement(load("ledger/applied"), (), _see_that_none_is_missing)


def _see_that_none_is_missing(found: Rows) -> None:
    if missing := _needed() - {row["version"] for row in found}:
        raise SchemaMissing(f"the database lacks migration {min(missing)}; run `forge migrate`")


@cache
def _needed() -> frozenset[int]:
    return frozenset(migration.version for migration in all_migrations())
