"""Helpers for tests of the embedded server: other processes, and what they leave behind."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import psycopg

from forge.store.embedded.processes import try_lock

COMMAND = """
import subprocess, sys
from pathlib import Path
from forge.store.embedded import open_shared

with open_shared(Path(sys.argv[1])) as server:
    if "with-child" in sys.argv:
        subprocess.Popen(["cat"], close_fds=False, stdout=subprocess.DEVNULL)
    print(server.url, flush=True)
    sys.stdin.read()
"""


class Command:
    """Another process that opens the folder, and closes it on request."""

    def __init__(self, folder: Path, *arguments: str, prefix: tuple[str, ...] = ()) -> None:
        self.process = subprocess.Popen(
            [*prefix, sys.executable, "-c", COMMAND, str(folder), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def url(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def finish(self) -> None:
        self.process.communicate(timeout=30)

    def send(self, signum: signal.Signals) -> None:
        os.killpg(self.process.pid, signum)
        self.process.communicate(timeout=30)


def ask(url: str, statement: str) -> object:
    with psycopg.connect(url, autocommit=True) as connection:
        answer = connection.execute(statement.encode())
        row = answer.fetchone() if answer.description else None
    return row and row[0]


def remove_far_socket(home: Path) -> None:
    """Remove the socket's folder where the path of `home` was too long to hold it."""
    if (link := home / "socket.link").is_symlink():
        shutil.rmtree(link.readlink().parent)


def is_held(path: Path) -> bool:
    """Whether some process holds the lock for itself alone."""
    descriptor = try_lock(path, shared=True)
    if descriptor is None:
        return True
    os.close(descriptor)
    return False
