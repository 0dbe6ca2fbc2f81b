"""Statements of `forge doctor`, one function each."""

from forge.store.connection.database import Database
from forge.store.migrate import Migration, pending
from forge.store.roles import API_ROLE
from forge.store.statement import Row, Rows, Statement, load, only, rows


def server() -> Statement[Row]:
    return Statement(load("doctor/server"), (), only)


def api_rights() -> Statement[Row]:
    """Read the role of a session, and whether it has more rights than the API needs."""
    return Statement(load("doctor/api_rights"), (API_ROLE,), only)


def grants() -> Statement[Row]:
    return Statement(load("doctor/grants"), (), only)


def superuser_owners() -> Statement[Rows]:
    return Statement(load("doctor/superuser_owners"), (), rows)


def schema_creators() -> Statement[Rows]:
    return Statement(load("doctor/schema_creators"), (), rows)


def role_powers(roles: list[str]) -> Statement[Rows]:
    return Statement(load("doctor/role_powers"), (roles,), rows)


def rights_held(roles: list[str]) -> Statement[Rows]:
    return Statement(load("doctor/rights_held"), (roles,), rows)


def owners_gone(silent_for: float) -> Statement[Rows]:
    return Statement(load("doctor/owners_gone"), (silent_for,), rows)


def tables() -> Statement[Rows]:
    return Statement(load("doctor/tables"), (), rows)


def overdue(completed: float | None, failed: float | None) -> Statement[float]:
    return Statement(load("doctor/overdue"), (completed, failed), lambda found: found[0]["seconds"])


def broken_parts() -> Statement[Rows]:
    return Statement(load("doctor/broken_parts"), (), rows)


def old_snapshots(open_for: float) -> Statement[Rows]:
    return Statement(load("doctor/old_snapshots"), (open_for,), rows)


async def missing_migrations(database: Database) -> list[Migration]:
    """Return the migrations that are not applied to this database."""
    async with database.acquire() as connection:
        return await pending(connection)
