"""Locks on files that end with the processes that hold them, however those end.

A lock belongs to the open file, not to the process: handed to a child as an open descriptor it
lasts until the last process that inherited it has gone. Nothing is left to clean up after a crash.
"""

import fcntl
import os
import time
from pathlib import Path

from forge.store.embedded.errors import ServerNotStarted

PAUSE = 0.02


def try_lock(path: Path, *, shared: bool = False) -> int | None:
    """The descriptor that holds the lock, or None when somebody else holds it."""
    descriptor = _open(path)
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def wait_for_lock(path: Path, *, shared: bool = False, patience: float) -> int:
    """The descriptor that holds the lock, as soon as it can be had."""
    deadline = time.monotonic() + patience
    while (descriptor := try_lock(path, shared=shared)) is None:
        if time.monotonic() > deadline:
            raise ServerNotStarted(
                f"{path} stayed locked for {patience:.0f} s. "
                "See which process holds it (`fuser` tells), end that, and try again."
            )
        time.sleep(PAUSE)
    return descriptor


def _open(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except PermissionError as error:
        raise ServerNotStarted(
            f"{path} belongs to another user. "
            f"Run as that user, or move {path.parent} away to begin with an empty database."
        ) from error
    except OSError as error:
        raise ServerNotStarted(
            f"Cannot open {path}: {error.strerror}. Move {path.parent} away and try again."
        ) from error
