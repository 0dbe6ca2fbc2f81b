"""`ctx.log`: the log of an attempt, kept in the database and emitted as ordinary log records."""

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import islice
from typing import Any

from forge.core.attempt_log import PROGRESS_KEPT, BoundedLines, Level, LogLine
from forge.core.errors import ForgeError
from forge.core.payload import decode, decode_if_possible, encode
from forge.core.sensitive.redact import redact, redact_text, secrets_in

logger = logging.getLogger("forge.job")
LONGEST_MESSAGE = 1000
# Bytes of JSON. Fields that have more are stored as short texts.
LONGEST_FIELDS = 4096
MOST_SHORT_FIELDS = 20
LONGEST_SHORT_FIELD = 200


class AttemptLog:
    """The log of an attempt: `ctx.log.info("imported", rows=500)`.

    Any thread of the handler can write. No call fails, whatever the message and the fields are.
    """

    def __init__(self, input: str, room: int, announce: Callable[[], None]) -> None:
        self._input = input
        self._secrets: Collection[str] | None = None
        self._announce = announce
        self._lock = threading.Lock()
        self._lines = BoundedLines("log", room) if room else None
        self._progress = BoundedLines("progress", PROGRESS_KEPT)
        self._last_progress: str | None = None

    def debug(self, message: str, /, **fields: Any) -> None:
        """Write a line of the level debug."""
        self._write(logging.DEBUG, "debug", message, fields)

    def info(self, message: str, /, **fields: Any) -> None:
        """Write a line of the level info."""
        self._write(logging.INFO, "info", message, fields)

    def warning(self, message: str, /, **fields: Any) -> None:
        """Write a line of the level warning."""
        self._write(logging.WARNING, "warning", message, fields)

    def error(self, message: str, /, **fields: Any) -> None:
        """Write a line of the level error."""
        self._write(logging.ERROR, "error", message, fields)

    def _write(self, number: int, level: Level, message: str, fields: Mapping[str, Any]) -> None:
        text, plain = self._redacted(message, fields)
        if logger.isEnabledFor(number):
            extra = {"fields": plain} if plain else None
            logger.log(number, "%s", text, extra=extra, stacklevel=3)
        if self._lines is None:
            return
        stored = encode(plain, what="the fields") if plain else None
        with self._lock:
            self._lines.add(time.monotonic(), text, level=level, fields=stored)
        self._announce()

    def add_progress(self, percent: int, message: str) -> None:
        """Keep a progress message with its time, unless it repeats the one before."""
        if message == self._last_progress:
            return
        self._last_progress = message
        with self._lock:
            self._progress.add(time.monotonic(), message, percent=percent)

    def receive(self, lines: Iterable[LogLine]) -> None:
        """Add the lines that a child process has kept."""
        with self._lock:
            for line in lines:
                if line.kind == "progress":
                    self._progress.receive(line)
                elif self._lines is not None:
                    self._lines.receive(line)

    def take(self, *, is_end: bool) -> list[LogLine]:
        """Take out what is to be stored now."""
        now = time.monotonic()
        with self._lock:
            taken = self._progress.take(now, is_end=is_end)
            if self._lines is not None:
                taken += self._lines.take(now, is_end=is_end)
        return taken

    @property
    def holds_back(self) -> bool:
        """Whether there is a line that will be stored later."""
        return self._progress.is_held or (self._lines is not None and self._lines.is_held)

    def _redacted(self, message: str, fields: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        if self._secrets is None:
            self._secrets = secrets_in(decode_if_possible(self._input))
        # Truncated last, so that no half of a secret escapes.
        text = storable(redact_text(_text(message), self._secrets))[:LONGEST_MESSAGE]
        plain: dict[str, Any] = redact(_plain(fields), self._secrets) if fields else {}
        return text, plain


def storable(text: str) -> str:
    """Return a text without what PostgreSQL cannot store."""
    return text.replace("\0", "").encode("utf-8", "replace").decode()


def _plain(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields as plain JSON, or as short texts where that is impossible or too much."""
    try:
        plain: dict[str, Any] = decode(encode(dict(fields), limit=LONGEST_FIELDS))
    except ForgeError:
        some = islice(fields.items(), MOST_SHORT_FIELDS)
        return {storable(name)[:100]: _text(value)[:LONGEST_SHORT_FIELD] for name, value in some}
    return plain


def _text(value: object) -> str:
    try:
        return storable(str(value))
    except Exception:  # raised by the type's own code
        return f"<{type(value).__name__}>"
