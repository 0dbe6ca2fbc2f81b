"""Writes the log lines of successful attempts in batches, bypassing the logging module.

A log record costs as much as a small job, and most lines are of successes. If the CLI configured
logging and no handler or filter was added, successes are collected here and written as identical
lines, many at a time.
"""

import asyncio
import json
import logging
import time
from typing import TextIO

from forge.core.job import Job
from forge.core.terminal_safe import terminal_safe
from forge.telemetry.logs.attempt_records import AttemptFilter

# Lines are written after this many seconds, or when this many are waiting.
FLUSH_DELAY = 0.05
MAX_BATCH = 100

# An attempt that succeeded: its job, how long it took, and when it ended.
Success = tuple[Job, float, float]


class LineHandler(logging.StreamHandler[TextIO]):
    """Writes records at once and successes in batches, in order."""

    def __init__(self, *, is_json: bool) -> None:
        super().__init__()
        self.is_json = is_json
        self._lines = JsonLines() if is_json else TextLines()
        self._noted: list[Success] = []

    def completed(self, job: Job, seconds: float, began: float | None) -> None:
        """Collect a successful attempt; called from the event loop only."""
        noted = self._noted
        noted.append((job, seconds, time.time()))
        if len(noted) == 1:
            asyncio.get_running_loop().call_later(FLUSH_DELAY, self.flush)
        elif len(noted) >= MAX_BATCH:
            self.flush()

    def emit(self, record: logging.LogRecord) -> None:
        self._write_noted()
        super().emit(record)

    def flush(self) -> None:
        self._write_noted()
        super().flush()

    def _write_noted(self) -> None:
        self.acquire()
        try:
            noted, self._noted = self._noted, []
            if noted:
                self.stream.write(self._lines(noted))
        except (OSError, ValueError):
            pass  # the stream is closed; jobs continue
        finally:
            self.release()


def line_handler(logger: logging.Logger) -> LineHandler | None:
    """Return the handler for batched lines; None if other handlers or filters need the records."""
    root = logging.getLogger()
    is_plain = logger.propagate and not (logger.handlers or logger.filters or root.filters)
    if not is_plain or len(root.handlers) != 1:
        return None
    (handler,) = root.handlers
    added = [each for each in handler.filters if not isinstance(each, AttemptFilter)]
    is_ours = isinstance(handler, LineHandler) and not added
    return handler if is_ours and handler.level <= logging.INFO else None  # type: ignore[return-value]


class TextLines:
    """Formats lines for people."""

    def __init__(self) -> None:
        self._millisecond = 0
        self._time = ""
        self._names: dict[str, str] = {}

    def __call__(self, successes: list[Success]) -> str:
        lines = []
        for job, seconds, ended in successes:
            if (millisecond := int(ended * 1000)) != self._millisecond:
                self._set_time(millisecond)
            name = self._names.get(job.type) or self._add_name(job.type)
            lines.append(
                f"{self._time} INFO    {name} {job.id} completed in {seconds:.3f} s, "
                f"attempt {job.attempt} of {job.max_attempts}\n"
            )
        return "".join(lines)

    def _set_time(self, millisecond: int) -> None:
        self._millisecond = millisecond
        second, rest = divmod(millisecond, 1000)
        stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(second))
        self._time = f"{stamp},{rest:03}"

    def _add_name(self, job_type: str) -> str:
        name = self._names[job_type] = terminal_safe(job_type)
        return name


class JsonLines:
    """Formats one JSON object per line, from cached pieces that most lines share."""

    def __init__(self) -> None:
        self._second = 0
        self._time = ""
        self._pieces: dict[tuple[str, int, int, int], tuple[str, str, str, str]] = {}

    def __call__(self, successes: list[Success]) -> str:
        lines = []
        for job, seconds, ended in successes:
            if (second := int(ended)) != self._second:
                self._second = second
                self._time = time.strftime('{"time": "%Y-%m-%dT%H:%M:%S', time.gmtime(second))
            kind = job.type, job.attempt, job.max_attempts, job.crashes
            level, took, named, rest = self._pieces.get(kind) or self._add_pieces(*kind)
            job_id = str(job.id)
            tenant = "null" if job.tenant_id is None else job.tenant_id
            correlation = "null" if job.correlation_id is None else f'"{job.correlation_id}"'
            lines.append(
                f"{self._time}.{int((ended - second) * 1e6):06}{level}{job_id} completed in "
                f"{seconds:.3f}{took}{job_id}{named}{round(seconds, 6)!r}{rest}{tenant}, "
                f'"correlation_id": {correlation}}}\n'
            )
        return "".join(lines)

    def _add_pieces(
        self, job_type: str, attempt: int, most: int, crashes: int
    ) -> tuple[str, str, str, str]:
        name = json.dumps(job_type, ensure_ascii=False)
        pieces = self._pieces[job_type, attempt, most, crashes] = (
            f'+00:00", "level": "info", "logger": "forge", "message": "{name[1:-1]} ',
            f' s, attempt {attempt} of {most}", "job_id": "',
            f'", "job_type": {name}, "attempt": {attempt}, "duration": ',
            f', "outcome": "completed", "error": null, "retries": {attempt - 1}, '
            f'"crashes": {crashes}, "state": "completed", "tenant_id": ',
        )
        return pieces
