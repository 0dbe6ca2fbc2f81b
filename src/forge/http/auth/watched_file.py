"""A file that is reloaded when it changes, so that revoking a token needs no restart."""

import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

from forge.core.errors import ForgeError

T = TypeVar("T")
Mark = tuple[int, int, int]

# Seconds between two checks of the file.
CHECK_INTERVAL = 1.0
# A file that changed within these seconds may change again with the same mtime: reread it.
SETTLED_AFTER = 2.0
# Seconds between two reports of an unreadable file.
REPORT_INTERVAL = 60.0

log = logging.getLogger("forge.http")


class FileUnreadable(ForgeError):
    """A file has been unreadable for longer than its grace period."""


class WatchedFile(Generic[T]):
    """The current content of a file; its last readable content for a grace period."""

    def __init__(self, path: Path, read: Callable[[Path], T], first: T, grace: float) -> None:
        self._path = path
        self._read = read
        self._grace = grace
        self._value = first
        self._mark = self._stat()
        self._looked_at = time.monotonic()
        self._failing_since: float | None = None
        self._reported_at = float("-inf")
        self._error: Exception | None = None

    def value(self) -> T:
        """Return the content, at most a second old, or raise FileUnreadable."""
        now = time.monotonic()
        if now - self._looked_at >= CHECK_INTERVAL:
            self._looked_at = now
            mark = self._stat()
            # Retry an unreadable file even if it has not changed.
            if mark != self._mark or self._failing_since is not None:
                self._mark = mark
                self._reload(now)
        if self._failing_since is not None and now - self._failing_since >= self._grace:
            self._reject(now)
        return self._value

    def _reload(self, now: float) -> None:
        try:
            value = self._read(self._path)
        except Exception as error:  # any error: the grace period limits its effect
            if self._failing_since is None:
                self._failing_since = now
                log.error(
                    "cannot read %s: %s; its last content is used for %g s more, then its tokens "
                    "are rejected; correct the file",
                    self._path,
                    error,
                    self._grace,
                )
            self._error = error
            return
        if self._failing_since is not None or value != self._value:
            log.warning("%s changed and was reloaded", self._path)
        self._value = value
        self._failing_since = self._error = None
        self._reported_at = float("-inf")

    def _reject(self, now: float) -> None:
        if now - self._reported_at >= REPORT_INTERVAL:
            self._reported_at = now
            log.critical(
                "%s has been unreadable for longer than [auth] reload_grace; its tokens are "
                "rejected until it is readable: %s",
                self._path,
                self._error,
            )
        raise FileUnreadable(f"cannot read {self._path} ({self._error}); correct the file")

    def _stat(self) -> Mark | None:
        try:
            found = self._path.stat()
        except OSError:
            return None
        # While unsettled, return a unique value, so that the next check reloads the file.
        is_settled = abs(time.time() - found.st_mtime) >= SETTLED_AFTER
        changed_at = found.st_mtime_ns if is_settled else -time.monotonic_ns()
        return (changed_at, found.st_size, found.st_ino)
