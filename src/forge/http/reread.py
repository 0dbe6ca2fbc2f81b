"""A file that is read again when it changes, so that a token is withdrawn without a restart."""

import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

T = TypeVar("T")

# How often the file is looked at.
INTERVAL = 1.0

log = logging.getLogger("forge.http")


class Reread(Generic[T]):
    """What a file says; if it cannot be read any more, what it said last."""

    def __init__(self, path: Path, read: Callable[[Path], T], first: T) -> None:
        self._path = path
        self._read = read
        self._value = first
        self._mark = self._look()
        self._looked_at = time.monotonic()

    def value(self) -> T:
        """Return what the file says, at most a second old."""
        now = time.monotonic()
        if now - self._looked_at >= INTERVAL:
            self._looked_at = now
            if (mark := self._look()) != self._mark:
                self._mark = mark
                self._take()
        return self._value

    def _take(self) -> None:
        try:
            self._value = self._read(self._path)
            log.info("%s changed and was read again", self._path.name)
        except Exception as error:  # a half-written file must not lock everybody out
            log.error("%s cannot be read, so that its last content holds: %s", self._path, error)

    def _look(self) -> tuple[int, int, int] | None:
        try:
            found = self._path.stat()
        except OSError:
            return None
        return (found.st_mtime_ns, found.st_size, found.st_ino)
