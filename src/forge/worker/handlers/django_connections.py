"""Django's connections: broken and outdated ones are closed around each handler.

Django does so around each request; without it a connection that was lost once would fail every
later handler in its thread.
"""

import sys
from contextlib import suppress


def close_stale_connections() -> None:
    """Close those of this thread that are broken or older than CONN_MAX_AGE."""
    if (db := sys.modules.get("django.db")) is None:
        return
    if sys.modules["django.conf"].settings.configured:
        with suppress(Exception):  # a handler may still succeed without the database
            for connection in db.connections.all(initialized_only=True):
                # Django's close_old_connections() closes those of its own tests, too.
                if not connection.in_atomic_block:
                    connection.close_if_unusable_or_obsolete()


def close_stale_connections_of_async_code() -> None:
    """Close those of the thread in which `sync_to_async` runs its functions, in their order."""
    if "django.db" in sys.modules:
        executor = sys.modules["asgiref.sync"].SyncToAsync.single_thread_executor
        with suppress(RuntimeError):  # the interpreter shuts down
            executor.submit(close_stale_connections)
