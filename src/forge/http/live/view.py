"""The live view of a job: serialised once per change for all followers."""

from typing import Any, NamedTuple
from uuid import UUID

from pydantic_core import to_json

from forge.core.lifecycle import Status
from forge.core.payload import decode_if_possible
from forge.core.sensitive.redact import redact, secrets_in
from forge.store.statement import Row

# Watch tokens are held by end users' browsers: show status, progress and result, but not the
# input, the tenant, the worker or the handler's checkpoint.
COLUMNS = (
    "id",
    "job_type",
    "status",
    "attempts",
    "max_attempts",
    "progress_percent",
    "progress_message",
    "last_error",
    "created_at",
    "scheduled_at",
    "started_at",
    "completed_at",
    "failed_at",
    "cancelled_at",
)
_BEFORE, _AFTER = '{"type":"job","job":', "}"


class LiveJob(NamedTuple):
    """The state of a job, as followers see it."""

    id: UUID
    version: int
    tenant_id: int | None
    is_final: bool
    message: str

    @property
    def job(self) -> str:
        """The JSON of the job without the message around it."""
        return self.message[len(_BEFORE) : -len(_AFTER)]

    @classmethod
    def from_row(cls, row: Row) -> "LiveJob":
        """Serialise a row as the message to send."""
        status = Status(row["status"])
        shown: dict[str, Any] = {name: row[name] for name in COLUMNS}
        shown |= {"state": status.state, **_redacted(row)}
        message = f"{_BEFORE}{to_json(shown).decode()}{_AFTER}"
        return cls(row["id"], row["version"], row["tenant_id"], status.is_final, message)


def _redacted(row: Row) -> dict[str, Any]:
    allowed = row["allow_sensitive"] or ()
    known = secrets_in(decode_if_possible(row["input"]), allowed)
    output = decode_if_possible(row["output"])
    messages = {name: row[name] for name in ("progress_message", "last_error")}
    is_undecodable = output is None and row["output"] not in (None, "null")
    return {name: redact(value, known) for name, value in messages.items()} | {
        "output": redact(output, known, allowed),
        "undecodable": ["output"] if is_undecodable else [],
    }
