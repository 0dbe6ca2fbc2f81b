"""Logs events: one structured record per attempt, and notices of workers."""

import json
import logging
from collections.abc import Callable, Mapping
from copy import copy
from datetime import UTC, datetime
from textwrap import indent
from typing import Any

from forge.core.events import (
    AttemptEnded,
    AttemptLost,
    AttemptRefused,
    AttemptStopped,
    ClientDropped,
    Event,
    Events,
    JobsRescued,
    WorkerNotice,
)
from forge.core.job import Job
from forge.core.lifecycle import Status
from forge.core.outcome import (
    Ack,
    Completion,
    Crashed,
    Expired,
    Outcome,
    Raised,
    Released,
    Settlement,
    Snoozed,
)
from forge.core.payload import decode_if_possible
from forge.core.sensitive.redact import redact_text, secrets_in
from forge.core.terminal_safe import terminal_safe, without_bidi
from forge.telemetry.logs.attempt_records import job_fields
from forge.telemetry.logs.lines import line_handler

logger = logging.getLogger("forge")


def log_events(events: Events) -> None:
    """Log events from now on; listen only to those that the log level includes."""
    if not logger.isEnabledFor(logging.CRITICAL):
        return
    if not logger.isEnabledFor(logging.INFO):
        events.other_listeners.append(log_event)
    elif (handler := line_handler(logger)) is not None:
        events.other_listeners.append(log_event)
        events.completion_listeners.append(handler.completed)
    else:
        events.listeners.append(log_event)


def log_event(event: Event) -> None:
    """Write an event to the logger `forge`."""
    match event:
        case AttemptEnded():
            _log_attempt(event)
        case AttemptStopped(job, seconds, status):
            why = _CANCELLED if status is Status.CANCELLED else _NOT_OWNED
            fields = _fields(job, seconds, "stopped", why, status)
            logger.warning("%s %s stopped: %s", job.type, job.id, why, extra=fields)
        case AttemptLost():
            fields = _fields(event, event.seconds, "lost", _DIED, Status.RETRY)
            logger.warning("%s %s lost: %s", event.type, event.id, _DIED, extra=fields)
        case AttemptRefused(job_id, lease, act):
            late = "%s of job %s (lease %d) came too late and changed nothing"
            logger.warning(late, act, job_id, lease, extra={"job_id": job_id, "lease": lease})
        case JobsRescued(job_ids, workers):
            jobs = "job" if len(job_ids) == 1 else "jobs"
            dead = ", ".join(map(str, workers))
            logger.warning("rescued %d %s from dead workers (%s)", len(job_ids), jobs, dead)
        case ClientDropped(reason, client, connections):
            what = f"closed {connections} connection{'' if connections == 1 else 's'}"
            where = "" if client is None else f" (the last from {client})"
            fields = {"client": client, "connections": connections, "reason": reason}
            logger.warning("%s%s: %s", what, where, reason, extra=fields)
        case WorkerNotice(level, message, detail):
            shown = "".join(f"; {k}: {redact_text(str(v))}" for k, v in detail.items())
            logger.log(_LEVELS.get(level, logging.WARNING), "%s%s", message, shown)


class JsonFormatter(logging.Formatter):
    """Formats a record as one JSON object per line, with its fields."""

    def format(self, record: logging.LogRecord) -> str:
        written = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        written |= {k: v for k, v in record.__dict__.items() if k not in ORDINARY}
        if record.exc_info:
            written["exception"] = redact_text(self.formatException(record.exc_info))
        elif record.exc_text:  # from a child process, which redacted it
            written["exception"] = record.exc_text
        return without_bidi(json.dumps(written, default=str, ensure_ascii=False))


class TextFormatter(logging.Formatter):
    """Formats a record as a line for people, with the traceback if there is one."""

    def __init__(self) -> None:
        super().__init__(TEXT_FORMAT)

    def format(self, record: logging.LogRecord) -> str:
        if trace := record.exc_text:
            record = copy(record)
            record.exc_text = indent(terminal_safe(trace), "  ")
        return super().format(record)

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        line = super().formatMessage(record)
        of = record.__dict__
        if isinstance(fields := of.get("fields"), dict):  # of ctx.log
            line += "".join(f" {name}={value}" for name, value in fields.items())
        if record.name != logger.name and "job_id" in of:
            line += f" ({of.get('job_type')} {of['job_id']}, attempt {of.get('attempt')})"
        return terminal_safe(line)

    def formatException(self, error: Any) -> str:  # noqa: N802
        return terminal_safe(redact_text(super().formatException(error)))


MAX_ERROR_CHARS = 500
MAX_MESSAGE_CHARS = 4000
TEXT_FORMAT = "%(asctime)s %(levelname)-7s %(message)s"
_NOT_OWNED = "another worker owns its job, or the job was deleted"
_CANCELLED = "its job was cancelled"
_DIED = "the worker died while it ran this job"
_LEVELS = {"info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
_PHRASES = {
    "completed": "completed in",
    "retry": "failed after",
    "failed": "failed permanently after",
    "dead_letter": "became a dead letter after",
}
ORDINARY = {*logging.makeLogRecord({}).__dict__, "message", "asctime", "taskName"}


def _log_attempt(event: AttemptEnded) -> None:
    job, ack = event.job, event.ack
    status = Status.COMPLETED if isinstance(ack, Completion) else ack.status
    outcome, error = _outcome(event, status), _error(event.outcome, job)
    level = _level(event.outcome, status)
    if not logger.isEnabledFor(level):
        return
    record = logger.makeRecord(
        logger.name,
        level,
        __file__,
        0,
        "%s %s %s %.3f s, attempt %d of %d%s%s",
        (
            job.type,
            job.id,
            _PHRASES.get(outcome, f"{outcome} after"),
            event.seconds,
            job.attempt,
            job.max_attempts,
            _next_try(ack),
            # On one line, so that an error cannot forge a log line.
            f": {' '.join(error.split())}" if error else "",
        ),
        None,
        extra=_fields(job, event.seconds, outcome, error, status),
    )
    record.exc_text = _trace(event.outcome, job)
    logger.handle(record)


def _next_try(ack: Ack) -> str:
    if isinstance(ack, Completion) or ack.delay is None:
        return ""
    return f", next attempt in {ack.delay:.1f} s"


def _fields(
    job: Job | AttemptLost, seconds: float, outcome: str, error: str | None, status: Status | None
) -> dict[str, Any]:
    named = job_fields(job)
    return {
        "job_id": named.pop("job_id"),
        "job_type": named.pop("job_type"),
        "attempt": named.pop("attempt"),
        "duration": round(seconds, 6),
        "outcome": outcome,
        "error": error,
        "retries": job.attempt - 1,
        "crashes": named.pop("crashes"),
        "state": None if status is None else str(status.state),
        **named,
    }


def _outcome(event: AttemptEnded, status: Status) -> str:
    if isinstance(event.ack, Settlement) and event.ack.outcome == "lost":
        return "lost"
    match event.outcome:
        case Snoozed():
            return "snoozed"
        case Released():
            return "released"
        case Expired():
            return "expired"
        case Crashed():
            return "crashed"
    return str(status)


def _error(outcome: Outcome, job: Job) -> str | None:
    match outcome:
        case Raised(failure):
            # Redact more than is shown, so that no secret is truncated before it is recognized.
            text = f"{failure.exception}: {failure.message[:MAX_MESSAGE_CHARS]}"
            return redact_text(text, secrets_in(decode_if_possible(job.input)))[:MAX_ERROR_CHARS]
        case Crashed(how):
            return f"its process died: {how}"
        case Expired():
            return "expired before it could run"
    return None


def _trace(outcome: Outcome, job: Job) -> str | None:
    """Return the traceback of the handler's error, with secrets redacted."""
    if not isinstance(outcome, Raised) or not outcome.failure.trace:
        return None
    return redact_text(outcome.failure.trace, secrets_in(decode_if_possible(job.input)))


def _level(outcome: Outcome, status: Status) -> int:
    if status in (Status.FAILED, Status.DEAD_LETTER):
        return logging.ERROR
    return logging.WARNING if isinstance(outcome, Raised | Crashed) else logging.INFO


class RecordSender(logging.Handler):
    """Sends each record as a message, with the fields of the current attempt."""

    def __init__(self, send: Callable[[dict[str, Any]], None], attempt: Mapping[str, Any]) -> None:
        super().__init__()
        self._send = send
        self._attempt = {name: _plain(value) for name, value in attempt.items()}
        self._formatter = TextFormatter()

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._send({"log": self._fields(record)})
        except Exception:
            self.handleError(record)

    def _fields(self, record: logging.LogRecord) -> dict[str, Any]:
        extra = {k: _plain(v) for k, v in record.__dict__.items() if k not in ORDINARY}
        trace = self._formatter.formatException(record.exc_info) if record.exc_info else None
        return {
            **self._attempt,
            **extra,
            "name": record.name,
            "msg": record.getMessage(),
            "levelno": record.levelno,
            "levelname": record.levelname,
            "created": record.created,
            "process": record.process,
            "exc_text": trace,
        }


def _plain(value: Any) -> Any:
    is_plain = value is None or isinstance(value, bool | int | float | str)
    return value if is_plain or _is_json(value) else str(value)


def _is_json(value: Any) -> bool:
    """Whether a value is a dict of plain values, as the fields of ctx.log are."""
    try:
        return isinstance(value, dict) and bool(json.dumps(value))
    except (TypeError, ValueError, RecursionError):
        return False
