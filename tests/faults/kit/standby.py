"""A standby of a test's server, which the test can promote."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import asyncpg

from forge.store.embedded import Cluster


@contextmanager
def standby_of(primary: Cluster) -> Iterator[Cluster]:
    """A running standby that uses streaming replication; the primary is restarted for the copy."""
    directory = Path(tempfile.mkdtemp(prefix="forge-standby-"))
    directory.chmod(0o711)
    primary.stop()
    shutil.copytree(primary.data, directory / "server" / "data")
    primary.start()
    (directory / "server" / "data" / "standby.signal").touch()
    (directory / "server").chmod(0o711)
    following = {"primary_conninfo": primary.url(tcp=True)}
    standby = Cluster(directory / "server", settings=primary.settings | following, tcp=True)
    try:
        standby.start()
        yield standby
    finally:
        standby.kill()
        shutil.rmtree(directory)


async def promote(standby: Cluster) -> None:
    """Make a standby the primary."""
    connection = await asyncpg.connect(standby.url("postgres"))
    try:
        await connection.execute("select pg_promote()")
    finally:
        await connection.close()
