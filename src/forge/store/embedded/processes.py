"""File locks that processes hold until they end, and detached processes that inherit them.

A lock belongs to the open file, not to the process: passed to a child as an open descriptor it
lasts until the last process that inherited it has ended. A crash leaves nothing to clean up.
"""

import fcntl
import os
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from forge.store.embedded.binaries import ServerNotStarted

POLL_INTERVAL = 0.02


def try_lock(path: Path, *, shared: bool = False) -> int | None:
    """Return the descriptor that holds the lock, or None if another process holds it."""
    descriptor = _open(path)
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def wait_for_lock(path: Path, *, shared: bool = False, timeout: float) -> int:
    """Wait for the lock and return the descriptor that holds it."""
    deadline = time.monotonic() + timeout
    while (descriptor := try_lock(path, shared=shared)) is None:
        if time.monotonic() > deadline:
            raise ServerNotStarted(
                f"{path} stayed locked for {timeout:.0f} s. "
                "Find the process that holds it with `fuser`, end it, and try again."
            )
        time.sleep(POLL_INTERVAL)
    return descriptor


def spawn_detached(command: Sequence[str | Path], *, lock: int, log: Path) -> None:
    """Start a process that outlives this one, in its own session, and hand it the lock.

    The shell in between exits at once: Ctrl-C in the terminal does not reach the process, and the
    caller has no child process to wait for.
    """
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
    with os.fdopen(os.open(log, flags, 0o600), "ab") as output:
        subprocess.run(
            ["/bin/sh", "-c", '"$@" &', "sh", *command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            pass_fds=(lock,),
            start_new_session=True,
            cwd="/",
            env=server_environment(),
            check=True,
        )


def server_environment() -> dict[str, str]:
    """Return the environment without PG* variables, which configure clients of another server."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PG")} | {
        "LC_ALL": "C"
    }


def _open(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except PermissionError as error:
        raise ServerNotStarted(
            f"{path} belongs to another user. "
            f"Run as that user, or move {path.parent} away to start with an empty database."
        ) from error
    except OSError as error:
        raise ServerNotStarted(
            f"Cannot open {path}: {error.strerror}. Move {path.parent} away and try again."
        ) from error
