"""Metrics of database statements: observers of the store's links."""

import threading

from forge.core.errors import ForgeError
from forge.store.connection.link import Observer
from forge.store.statement import Statement, name_of
from forge.telemetry.metrics.registries import ApiMetrics, WorkerMetrics

# Folders of statements that are not named after their table, and those without a table.
TABLES = {
    "audit": "forge_audit_events",
    "bulk": "forge_jobs",
    "ledger": "forge_migrations",
    "messages": "forge_jobs",
}
NO_TABLE = frozenset(
    {
        "bench",
        "doctor",
        "functions",
        "notify",
        "other",
        "roles",
        "savepoint",
        "server",
        "tenant",
        "testing",
        "transaction",
    }
)


def of_api(metrics: ApiMetrics) -> Observer:
    """Return the observer for the server's metrics, labelled by operation and table."""

    def observe(statement: Statement[object], seconds: float, error: ForgeError | None) -> None:
        noun, _, verb = name_of(statement).partition("/")
        labels = (verb or noun, table_of(noun))
        metrics.db_query_duration_seconds.labelled(*labels).observe(seconds)
        if error is not None:
            metrics.db_query_error_total.labelled(*labels, code_of(error)).add()

    return observe


def of_worker(metrics: WorkerMetrics) -> Observer:
    """Return the observer for a worker's metrics; heartbeats run in a separate thread."""
    lock = threading.Lock()

    def observe(statement: Statement[object], seconds: float, error: ForgeError | None) -> None:
        name = name_of(statement)
        with lock:
            metrics.db_query_duration_seconds.labelled(name).observe(seconds)
            if error is not None:
                metrics.db_query_errors_total.labelled(name, type_of(error)).add()

    return observe


def table_of(noun: str) -> str:
    """Return the table of the statements in a folder, or the folder if they have none."""
    return noun if noun in NO_TABLE else TABLES.get(noun, f"forge_{noun}")


def code_of(error: ForgeError) -> str:
    """Return the SQLSTATE of an error, or the name of its type if it has none."""
    return getattr(error.__cause__, "sqlstate", None) or type_of(error)


def type_of(error: ForgeError) -> str:
    return type(error.__cause__ or error).__name__
