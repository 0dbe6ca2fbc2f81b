"""What is shown of a job, a dead letter or a schedule: all of it but the secrets that it holds.

The API, the socket, the dead letters and the commands show what this returns, and logs are written
with the same rules; the database and handlers have the original.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from forge.core.dead_letter import DeadLetter
from forge.core.errors import Fault
from forge.core.known_secrets import REDACTED
from forge.core.path import Path
from forge.core.record import JobRecord
from forge.core.redact import redact, redact_key, redact_text, secrets_in
from forge.core.schedule_record import ScheduleRecord
from forge.core.sensitive import path_text

Record = TypeVar("Record", JobRecord, DeadLetter, ScheduleRecord)
JOB = ("output", "meta", "checkpoint", "last_error", "progress_message", "tags")
LETTER = ("edited_payload", "attempts", "error_message", "notes")
SCHEDULE = ("checkpoint", "last_error", "recent_runs")


def shown_job(record: JobRecord, allowed: Sequence[str] = ()) -> JobRecord:
    """Return a job as it is shown; `allowed` is the `allow_sensitive` of its type."""
    return _shown(record, "input", JOB, allowed)


def shown_letter(letter: DeadLetter, allowed: Sequence[str] = ()) -> DeadLetter:
    """Return a dead letter with its payload as it is shown."""
    return _shown(letter, "payload", LETTER, allowed, secrets_in(letter.edited_payload, allowed))


def shown_schedule(record: ScheduleRecord) -> ScheduleRecord:
    """Return a schedule as it is shown."""
    return _shown(record, "payload", SCHEDULE, ())


def shown_attempt(
    row: Mapping[str, Any], input: Any, allowed: Sequence[str] = ()
) -> dict[str, Any]:
    """Return an attempt of a job with this input as it is shown."""
    known = secrets_in(input, allowed)
    return dict(row) | {name: _text(row[name], known) for name in ("error", "trace")}


def shown_message(message: str | None, payload: Any, allowed: Sequence[str] = ()) -> str | None:
    """Return what was said about a payload as it is shown."""
    return _text(message, secrets_in(payload, allowed) if message else ())


def shown_event(row: dict[str, Any]) -> dict[str, Any]:
    """Return an event of the audit as it is shown; people's notes may quote what they saw."""
    return row | {name: redact(row[name]) for name in ("notes", "detail")}


def redacted_faults(payload: Any) -> list[Fault]:
    """Return where a payload holds the mark of what was redacted, which nobody means to store."""
    said = "holds a redacted value; write the value or leave the payload out"
    return [Fault(path_text(path), said) for path in _marked(payload, ())]


def _shown(
    record: Record,
    payload: str,
    told: Sequence[str],
    allowed: Sequence[str],
    known: Collection[str] = (),
) -> Record:
    """Redact the columns of a row; the secrets of its payload go wherever they turn up."""
    given: Any = getattr(record, payload)
    changed = {payload: redact(given, known, allowed)}
    if changed[payload] != given:
        known = {*known, *secrets_in(given, allowed)}
    for name in told:
        if (value := getattr(record, name)) is not None:
            changed[name] = redact(value, known, allowed)
    # Schedules have no key of this kind.
    if (key := getattr(record, "idempotency_key", None)) is not None:
        changed["idempotency_key"] = redact_key(key, known)
    changed = {name: value for name, value in changed.items() if value != getattr(record, name)}
    return replace(record, **changed) if changed else record


def _text(text: str | None, known: Collection[str]) -> str | None:
    return None if text is None else redact_text(text, known)


def _marked(value: Any, path: Path) -> Iterator[Path]:
    match value:
        case dict():
            for key, inner in value.items():
                if REDACTED in str(key):
                    yield (*path, key)
                yield from _marked(inner, (*path, key))
        case list() | tuple():
            for place, inner in enumerate(value):
                yield from _marked(inner, (*path, place))
        case str() if REDACTED in value:
            yield path
