"""A PostgreSQL server for one test, which can stop, kill and restart it."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from forge.store.embedded import Cluster


@contextmanager
def running_server(**settings: str) -> Iterator[Cluster]:
    """A new, fully durable server on a socket and on a port of 127.0.0.1.

    Keywords are settings of postgresql.conf.
    """
    directory = Path(tempfile.mkdtemp(prefix="forge-faults-"))
    # The server's account must be able to enter the folder when the tests run as root.
    directory.chmod(0o711)
    cluster = Cluster(directory / "server", settings=settings, tcp=True)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.kill()
        shutil.rmtree(directory)
