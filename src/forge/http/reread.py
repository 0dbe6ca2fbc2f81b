"""A file that is read again when it changes, so that a withdrawal needs no restart."""

import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

from forge.core.errors import ForgeError

T = TypeVar("T")
Mark = tuple[int, int, int]

# How often the file is looked at.
INTERVAL = 1.0
# A file changed so lately may change again without a new time of change: it is read once more.
SETTLED = 2.0
# How often a file that stays unreadable is reported.
REPORT = 60.0

log = logging.getLogger("forge.http")


class Outdated(ForgeError):
    """A file has been unreadable for so long that what it said last no longer counts."""


class Reread(Generic[T]):
    """The content of a file; for a grace period what it was before the file became unreadable."""

    def __init__(self, path: Path, read: Callable[[Path], T], first: T, grace: float) -> None:
        self._path = path
        self._read = read
        self._grace = grace
        self._value = first
        self._mark = self._look()
        self._looked_at = time.monotonic()
        self._failing_since: float | None = None
        self._reported_at = float("-inf")
        self._error: Exception | None = None

    def value(self) -> T:
        """Return what the file says, at most a second old, or raise Outdated."""
        now = time.monotonic()
        if now - self._looked_at >= INTERVAL:
            self._looked_at = now
            mark = self._look()
            # A file that could not be read is tried again, changed or not.
            if mark != self._mark or self._failing_since is not None:
                self._mark = mark
                self._take(now)
        if self._failing_since is not None and now - self._failing_since >= self._grace:
            self._refuse(now)
        return self._value

    def _take(self, now: float) -> None:
        try:
            value = self._read(self._path)
        except Exception as error:  # whatever is wrong with it, the grace period bounds it
            if self._failing_since is None:
                self._failing_since = now
                log.error(
                    "%s cannot be read: %s; what it said last holds for %g s more, then nobody is "
                    "let in by it; correct the file",
                    self._path,
                    error,
                    self._grace,
                )
            self._error = error
            return
        if self._failing_since is not None or value != self._value:
            log.warning("%s changed and was read again", self._path)
        self._value = value
        self._failing_since = self._error = None
        self._reported_at = float("-inf")

    def _refuse(self, now: float) -> None:
        if now - self._reported_at >= REPORT:
            self._reported_at = now
            log.critical(
                "%s cannot be read for longer than [auth] reload_grace: every caller whom it let "
                "in is refused until it can: %s",
                self._path,
                self._error,
            )
        raise Outdated(f"{self._path} cannot be read ({self._error}); correct the file")

    def _look(self) -> Mark | None:
        try:
            found = self._path.stat()
        except OSError:
            return None
        # A mark that never comes again, so that the next look reads the file too.
        is_settled = abs(time.time() - found.st_mtime) >= SETTLED
        changed_at = found.st_mtime_ns if is_settled else -time.monotonic_ns()
        return (changed_at, found.st_size, found.st_ino)
