"""Debian's pgbouncer between a test and its server, in transaction mode."""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import unquote, urlsplit

from tests.faults.kit.process import spawn, wait_until

PGBOUNCER = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin:/sbin")
# Fewer than the clients: session state would leak from one client to another.
SERVER_CONNECTIONS = 4


@contextmanager
def pgbouncer(server_url: str, connections: int = SERVER_CONNECTIONS) -> Iterator[str]:
    """Run a pooler in front of the database at this TCP URL, and yield the pooler's URL."""
    assert PGBOUNCER is not None
    folder = Path(tempfile.mkdtemp(prefix="forge-pooler-"))
    folder.chmod(0o711)
    port = _free_port()
    config = folder / "pgbouncer.ini"
    config.write_text(_configuration(server_url, port, connections))
    config.chmod(0o644)
    # pgbouncer refuses to run as root, but can switch the user itself.
    account = ["-u", "postgres"] if os.geteuid() == 0 else []
    parts = urlsplit(server_url)
    with spawn([PGBOUNCER, *account, config], output=folder / "log") as process:
        try:
            wait_until(
                lambda: _answers(port) or not process.is_alive, 30, "pgbouncer takes connections"
            )
            assert process.is_alive, process.output()
            yield f"postgresql://{parts.username}@127.0.0.1:{port}{parts.path}"
        finally:
            process.close()
            shutil.rmtree(folder)


def _configuration(server_url: str, port: int, connections: int) -> str:
    parts = urlsplit(server_url)
    database = parts.path.removeprefix("/")
    return f"""
[databases]
{database} = host={parts.hostname} port={parts.port} user={parts.username} \
password={unquote(parts.password or "")}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = {connections}
max_client_conn = 500
"""


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _answers(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False
