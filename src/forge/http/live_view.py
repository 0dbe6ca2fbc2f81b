"""What of a job is shown to whoever follows it: written once a change, for all who do."""

from typing import Any, NamedTuple
from uuid import UUID

from pydantic_core import to_json

from forge.core.lifecycle import Status
from forge.core.payload import decode_if_possible
from forge.core.redact import redact, secrets_in
from forge.store.statement import Row

# A watch token lies in an end user's browser: how the job stands and what came of it, and neither
# its input nor whose it is, where it runs or what its handler keeps.
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
    """A job at one moment, as its followers are shown it."""

    id: UUID
    version: int
    tenant_id: int | None
    is_final: bool
    message: str

    @property
    def job(self) -> str:
        """The job alone, without the message around it."""
        return self.message[len(_BEFORE) : -len(_AFTER)]

    @classmethod
    def from_row(cls, row: Row) -> "LiveJob":
        """Write a row as the message that is sent."""
        status = Status(row["status"])
        shown: dict[str, Any] = {name: row[name] for name in COLUMNS}
        shown |= {"state": status.state, **_without_secrets(row)}
        message = f"{_BEFORE}{to_json(shown).decode()}{_AFTER}"
        return cls(row["id"], row["version"], row["tenant_id"], status.is_final, message)


def _without_secrets(row: Row) -> dict[str, Any]:
    allowed = row["allow_sensitive"] or ()
    known = secrets_in(decode_if_possible(row["input"]), allowed)
    output = decode_if_possible(row["output"])
    told = {name: row[name] for name in ("progress_message", "last_error")}
    is_undecodable = output is None and row["output"] not in (None, "null")
    return {name: redact(value, known) for name, value in told.items()} | {
        "output": redact(output, known, allowed),
        "undecodable": ["output"] if is_undecodable else [],
    }
