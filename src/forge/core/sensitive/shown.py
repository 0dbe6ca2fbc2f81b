"""Jobs, dead letters and schedules with their secrets redacted, for output.

The HTTP API, WebSocket and CLI show these, and logs follow the same rules; the database and
handlers have the original values.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from forge.core.dead_letter import DeadLetter
from forge.core.errors import Fault, InvalidPayload
from forge.core.job import JobRecord
from forge.core.payload import Path
from forge.core.schedules.record import ScheduleRecord
from forge.core.sensitive.findings import path_text
from forge.core.sensitive.redact import REDACTED, redact, redact_key, redact_text, secrets_in

Record = TypeVar("Record", JobRecord, DeadLetter, ScheduleRecord)
JOB = ("output", "meta", "checkpoint", "last_error", "progress_message", "tags")
LETTER = ("edited_payload", "attempts", "error_message", "notes")
SCHEDULE = ("checkpoint", "last_error", "recent_runs")


def shown_job(record: JobRecord, allowed: Sequence[str] = ()) -> JobRecord:
    """Return a job with secrets redacted; `allowed` is the `allow_sensitive` of its type."""
    return _shown(record, "input", JOB, allowed)


def shown_letter(letter: DeadLetter, allowed: Sequence[str] = ()) -> DeadLetter:
    """Return a dead letter with secrets redacted."""
    return _shown(letter, "payload", LETTER, allowed, secrets_in(letter.edited_payload, allowed))


def shown_schedule(record: ScheduleRecord) -> ScheduleRecord:
    """Return a schedule with secrets redacted."""
    return _shown(record, "payload", SCHEDULE, ())


def shown_attempt(
    row: Mapping[str, Any], input: Any, allowed: Sequence[str] = ()
) -> dict[str, Any]:
    """Return an attempt of a job with this input, with secrets redacted."""
    known = secrets_in(input, allowed)
    return dict(row) | {name: _text(row[name], known) for name in ("error", "trace")}


def shown_message(message: str | None, payload: Any, allowed: Sequence[str] = ()) -> str | None:
    """Return a message about a payload with secrets redacted."""
    return _text(message, secrets_in(payload, allowed) if message else ())


def shown_event(row: dict[str, Any]) -> dict[str, Any]:
    """Return an audit event with secrets redacted; notes may quote values."""
    return row | {name: redact(row[name]) for name in ("notes", "detail")}


def refuse_redacted(what: str, value: Any) -> None:
    """Raise for redaction markers in a value that came back: they must not replace the secrets."""
    message = "is a redacted value; write the value itself, or leave it out to keep it"
    if faults := [Fault(path_text(path), message) for path in _marked(value, ())]:
        first = faults[0]
        raise InvalidPayload(f"{what}: {first.path} {first.message}", first.path, faults)


def _shown(
    record: Record,
    payload: str,
    columns: Sequence[str],
    allowed: Sequence[str],
    known: Collection[str] = (),
) -> Record:
    """Redact the columns of a row; secrets of its payload are redacted in all of them."""
    given: Any = getattr(record, payload)
    changed = {payload: redact(given, known, allowed)}
    if changed[payload] != given:
        known = {*known, *secrets_in(given, allowed)}
    for name in columns:
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
