"""Metrics of what is asked of the database: an observer of the store's links."""

import threading

from forge.core.errors import ForgeError
from forge.store.link import Observer
from forge.store.statement import Statement, name_of
from forge.telemetry.metrics import ApiMetrics, WorkerMetrics

# Statements whose files lie elsewhere than under the name of their table, and those without one.
TABLES = {"audit": "forge_audit_events", "ledger": "forge_migrations", "messages": "forge_jobs"}
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
        "transaction",
    }
)


def of_api(metrics: ApiMetrics) -> Observer:
    """Return what feeds the server's metrics: the verb is the operation, the noun the table."""

    def observe(statement: Statement[object], seconds: float, error: ForgeError | None) -> None:
        noun, _, verb = name_of(statement).partition("/")
        labels = (verb or noun, table_of(noun))
        metrics.db_query_duration_seconds.labelled(*labels).observe(seconds)
        if error is not None:
            metrics.db_query_error_total.labelled(*labels, code_of(error)).add()

    return observe


def of_worker(metrics: WorkerMetrics) -> Observer:
    """Return what feeds a worker's metrics; its heart asks from a thread of its own."""
    lock = threading.Lock()

    def observe(statement: Statement[object], seconds: float, error: ForgeError | None) -> None:
        name = name_of(statement)
        with lock:
            metrics.db_query_duration_seconds.labelled(name).observe(seconds)
            if error is not None:
                metrics.db_query_errors_total.labelled(name, type_of(error)).add()

    return observe


def table_of(noun: str) -> str:
    """Return the table that the statements of a folder are about, or the folder where none is."""
    return noun if noun in NO_TABLE else TABLES.get(noun, f"forge_{noun}")


def code_of(error: ForgeError) -> str:
    """Return PostgreSQL's code for an error, or the name of what kept the statement from it."""
    return getattr(error.__cause__, "sqlstate", None) or type_of(error)


def type_of(error: ForgeError) -> str:
    return type(error.__cause__ or error).__name__
