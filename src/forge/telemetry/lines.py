"""Log lines of attempts that succeeded, written past the logging module: most lines are of these.

What the logging module does for each record costs as much as a small job. Where the command line
has set up logging itself, and nobody has added to it, successes are noted here, and made into lines
that look the same many at a time.
"""

import asyncio
import json
import logging
import time
from typing import TextIO

from forge.core.harmless import harmless
from forge.core.job import Job
from forge.telemetry.attempt_records import AttemptFilter

# A line is seen this soon, or when so many have gathered.
DELAY = 0.05
MOST = 100

# An attempt that succeeded: its job, how long it took, and when it ended.
Success = tuple[Job, float, float]


class LineHandler(logging.StreamHandler[TextIO]):
    """Writes records as they come, and successes together; their order stays."""

    def __init__(self, *, is_json: bool) -> None:
        super().__init__()
        self.is_json = is_json
        self._lines = JsonLines() if is_json else TextLines()
        self._noted: list[Success] = []

    def completed(self, job: Job, seconds: float, began: float | None) -> None:
        """Note an attempt that succeeded; called from the event loop alone."""
        noted = self._noted
        noted.append((job, seconds, time.time()))
        if len(noted) == 1:
            asyncio.get_running_loop().call_later(DELAY, self.flush)
        elif len(noted) >= MOST:
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
    added = [each for each in handler.filters if not isinstance(each, AttemptFilter)]
    is_ours = isinstance(handler, LineHandler) and not added
    return handler if is_ours and handler.level <= logging.INFO else None  # type: ignore[return-value]


class TextLines:
    """Makes lines for people."""

    def __init__(self) -> None:
        self._millisecond = 0
        self._time = ""
        self._names: dict[str, str] = {}

    def __call__(self, successes: list[Success]) -> str:
        lines = []
        for job, seconds, ended in successes:
            if (millisecond := int(ended * 1000)) != self._millisecond:
                self._tell_time(millisecond)
            name = self._names.get(job.type) or self._add_name(job.type)
            lines.append(
                f"{self._time} INFO    {name} {job.id} completed in {seconds:.3f} s, "
                f"attempt {job.attempt} of {job.max_attempts}\n"
            )
        return "".join(lines)

    def _tell_time(self, millisecond: int) -> None:
        self._millisecond = millisecond
        second, rest = divmod(millisecond, 1000)
        stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(second))
        self._time = f"{stamp},{rest:03}"

    def _add_name(self, job_type: str) -> str:
        name = self._names[job_type] = harmless(job_type)
        return name


class JsonLines:
    """Makes lines for programs, one object each, out of pieces that most have in common."""

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
