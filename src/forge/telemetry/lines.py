"""Log lines of attempts that succeeded, written straight away: most lines are of these.

What the logging module does for each record costs as much as a small job. Where the command line
has set up logging itself, and nobody has added to it, lines that look the same are put together
here and written many at a time.
"""

import asyncio
import json
import logging
import time
from typing import TextIO

from forge.core.event import AttemptEnded

# A line is seen this soon, or when so many have gathered.
DELAY = 0.05
MOST = 500


class LineHandler(logging.StreamHandler[TextIO]):
    """Writes records as they come, and lines together; their order stays."""

    def __init__(self, *, is_json: bool) -> None:
        super().__init__()
        self.is_json = is_json
        self._lines: list[str] = []

    def write_soon(self, line: str) -> None:
        """Write a line before long; called from the event loop alone."""
        lines = self._lines
        lines.append(line)
        if len(lines) == 1:
            asyncio.get_running_loop().call_later(DELAY, self.flush)
        elif len(lines) >= MOST:
            self.flush()

    def emit(self, record: logging.LogRecord) -> None:
        self._write_lines()
        super().emit(record)

    def flush(self) -> None:
        self._write_lines()
        super().flush()

    def _write_lines(self) -> None:
        self.acquire()
        try:
            lines, self._lines = self._lines, []
            if lines:
                self.stream.write("".join(lines))
        except (OSError, ValueError):
            pass  # nobody reads any more; jobs go on
        finally:
            self.release()


def line_handler(logger: logging.Logger) -> LineHandler | None:
    """Return where lines may go past the logging module; None where somebody would miss them."""
    root = logging.getLogger()
    is_plain = logger.propagate and not (logger.handlers or logger.filters or root.filters)
    if not is_plain or len(root.handlers) != 1:
        return None
    (handler,) = root.handlers
    is_ours = isinstance(handler, LineHandler) and not handler.filters
    return handler if is_ours and handler.level <= logging.INFO else None  # type: ignore[return-value]


class SuccessLines:
    """Writes the line of an attempt that succeeded."""

    def __init__(self, handler: LineHandler) -> None:
        self._write = handler.write_soon
        self._line = self._as_json if handler.is_json else self._as_text
        self._second = 0
        self._time = ""
        self._types: dict[str, tuple[str, str]] = {}

    def __call__(self, event: AttemptEnded) -> None:
        self._write(self._line(event, time.time()))

    def _as_text(self, event: AttemptEnded, now: float) -> str:
        job, second = event.job, int(now)
        if second != self._second:
            self._second = second
            self._time = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(second))
        return (
            f"{self._time},{int((now - second) * 1000):03} INFO    {job.type} {job.id} "
            f"completed in {event.seconds:.3f} s, attempt {job.attempt} of {job.max_attempts}\n"
        )

    def _as_json(self, event: AttemptEnded, now: float) -> str:
        job, second = event.job, int(now)
        if second != self._second:
            self._second = second
            self._time = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
        written = self._types.get(job.type)
        if written is None:
            text = json.dumps(job.type, ensure_ascii=False)
            written = self._types[job.type] = (text, text[1:-1])
        job_id, attempt = str(job.id), job.attempt
        tenant = "null" if job.tenant_id is None else job.tenant_id
        correlation = "null" if job.correlation_id is None else f'"{job.correlation_id}"'
        return (
            f'{{"time": "{self._time}.{int((now - second) * 1e6):06}+00:00", "level": "info", '
            f'"logger": "forge", "message": "{written[1]} {job_id} completed in '
            f'{event.seconds:.3f} s, attempt {attempt} of {job.max_attempts}", '
            f'"job_id": "{job_id}", "job_type": {written[0]}, "attempt": {attempt}, '
            f'"duration": {round(event.seconds, 6)!r}, "outcome": "completed", "error": null, '
            f'"retries": {attempt - 1}, "state": "completed", "tenant_id": {tenant}, '
            f'"correlation_id": {correlation}}}\n'
        )
