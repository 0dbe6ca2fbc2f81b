"""What child processes log and print, as records of the worker's own log."""

import asyncio
import logging
import os
from typing import TYPE_CHECKING, Any, Self

from forge.telemetry.logs.attempt_records import job_fields
from forge.telemetry.logs.lines import LineHandler

if TYPE_CHECKING:
    from forge.worker.handlers.child_process import ChildProcess

CHUNK = 65_536
# A line longer than this is logged in pieces.
LONGEST_LINE = 16_384
# The end of an attempt waits for no more output than this many chunks.
MAX_CHUNKS = 16
log = logging.getLogger("forge.child")


def our_handler() -> LineHandler | None:
    """Return the handler that the command line has set up; None where the app logs by itself."""
    handlers = logging.getLogger().handlers
    return next((handler for handler in handlers if isinstance(handler, LineHandler)), None)


def log_from_child(fields: dict[str, Any]) -> None:
    """Log a record that a child process sent."""
    record = logging.makeLogRecord(fields)
    logger = logging.getLogger(record.name)
    if logger.isEnabledFor(record.levelno):
        logger.handle(record)


class ChildOutput:
    """Standard output or standard error of a child, logged line by line."""

    def __init__(self, stream: str, level: int) -> None:
        self._stream = stream
        self._level = level
        self._ours, self.theirs = os.pipe()
        os.set_blocking(self._ours, False)
        self._child: ChildProcess | None = None
        self._rest = b""

    @classmethod
    def both(cls) -> "list[Self]":
        """Return what captures a child's output; nothing where that may go to the terminal."""
        handler = our_handler()
        if handler is None or not handler.is_json:
            return []
        return [cls("stdout", logging.INFO), cls("stderr", logging.WARNING)]

    def read_from(self, child: "ChildProcess") -> None:
        self._child = child
        asyncio.get_running_loop().add_reader(self._ours, self._read)

    def drain(self) -> None:
        """Log what was printed so far, as output of the attempt that now ends."""
        for _ in range(MAX_CHUNKS):
            if not self._read():
                break
        self._log_lines(is_all=True)

    def close(self) -> None:
        if self._ours < 0:
            return
        self.drain()
        if self._ours >= 0:
            self._stop()

    def close_theirs(self) -> None:
        os.close(self.theirs)

    def _read(self) -> bool:
        """Read a chunk; False when there is none."""
        if self._ours < 0:
            return False
        try:
            chunk = os.read(self._ours, CHUNK)
        except BlockingIOError:
            return False
        if not chunk:
            self._stop()
        self._rest += chunk
        self._log_lines(is_all=not chunk)
        return bool(chunk)

    def _stop(self) -> None:
        if self._child is not None:
            asyncio.get_running_loop().remove_reader(self._ours)
        os.close(self._ours)
        self._ours = -1

    def _log_lines(self, *, is_all: bool) -> None:
        *lines, self._rest = self._rest.split(b"\n")
        if self._rest and (is_all or len(self._rest) > LONGEST_LINE):
            lines.append(self._rest)
            self._rest = b""
        for line in lines:
            for start in range(0, len(line), LONGEST_LINE):
                self._log(line[start : start + LONGEST_LINE])

    def _log(self, line: bytes) -> None:
        attempt = None if self._child is None else self._child.attempt
        fields: dict[str, Any] = {"stream": self._stream}
        if attempt is not None:
            fields |= job_fields(attempt.job)
        log.log(self._level, "%s", line.decode(errors="replace"), extra=fields)
