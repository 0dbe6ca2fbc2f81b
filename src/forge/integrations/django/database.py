"""The database of an alias: its URL for Forge's own connections, and statements on Django's."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar
from urllib.parse import quote

from django.core.exceptions import ImproperlyConfigured
from django.db import connections, transaction

from forge.core.database_parameters import PARAMETERS, UNSUPPORTED
from forge.core.errors import ConfigError
from forge.integrations.django.settings import DjangoSettings
from forge.store.borrowed import run_on, without_loop
from forge.store.statement import Statement

T = TypeVar("T")
# Django sets it for psycopg; Forge's own connections always use UTF-8.
DJANGOS_OWN = {"client_encoding"}


def forge_connection() -> Any:
    """Return this thread's connection to the database that has Forge's tables."""
    return connections[DjangoSettings.current().database]


def database_url() -> str:
    """Return the URL of that database as Django connects to it now: tests change its name."""
    connection = forge_connection()
    if connection.vendor != "postgresql":
        raise ConfigError(
            f"DATABASES[{connection.alias!r}] is {connection.vendor}, and Forge needs PostgreSQL; "
            'set FORGE["DATABASE"] to the alias of a PostgreSQL database'
        )
    try:
        given = connection.get_connection_params()
    except ImproperlyConfigured as error:
        raise ConfigError(f"DATABASES[{connection.alias!r}]: {error}") from error
    return url_of(given)


def url_of(parameters: dict[str, Any]) -> str:
    """Return a URL with libpq's parameters, of those that psycopg takes."""
    known = {
        name: value
        for name, value in parameters.items()
        if (name in PARAMETERS or name in UNSUPPORTED) and name not in DJANGOS_OWN
        if value is not None and value != ""
    }
    user = quote(str(known.pop("user", "")), safe="")
    password = quote(str(known.pop("password", "")), safe="")
    name = quote(str(known.pop("dbname", "")), safe="")
    login = f"{user}:{password}@" if password else f"{user}@" if user else ""
    query = "&".join(f"{key}={quote(str(value), safe='')}" for key, value in known.items())
    return f"postgresql://{login}/{name}" + (f"?{query}" if query else "")


@contextmanager
def joined_transaction() -> Iterator[Any]:
    """Yield the connection inside its current transaction, or inside one of its own."""
    connection = forge_connection()
    if connection.in_atomic_block or not connection.get_autocommit():
        yield connection
        return
    with transaction.atomic(using=connection.alias):
        yield connection


def run_here(statement: Statement[T]) -> T:
    """Run one statement on this thread's connection, in its current transaction if it has one."""
    with joined_transaction() as connection:
        return without_loop(connection, run_on(connection, statement))
