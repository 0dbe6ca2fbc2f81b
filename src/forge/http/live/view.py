"""The live view of a job: serialised once per change for all followers."""

from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from pydantic import BaseModel, Field
from pydantic_core import to_json

from forge.core.lifecycle import State, Status
from forge.core.payload import decode_if_possible
from forge.core.sensitive.redact import redact, secrets_in
from forge.http.fields import UNDECODABLE
from forge.store.statement import Row


class LiveJob(BaseModel):
    """A job, as followers see it."""

    # Watch tokens are held by end users' browsers: show status, progress and result, but not the
    # input, the tenant, the worker or the handler's checkpoint.
    id: UUID
    job_type: str
    status: Status
    state: State
    version: int = Field(
        description="Grows with each change of the job: ignore a state with a smaller version."
    )
    attempts: int
    max_attempts: int
    progress_percent: int | None
    progress_message: str | None
    last_error: str | None
    output: Any = Field(description="What the handler returned: any JSON; null before.")
    undecodable: list[str] = Field(description=UNDECODABLE)
    created_at: datetime
    scheduled_at: datetime
    started_at: datetime | None
    completed_at: datetime | None
    failed_at: datetime | None
    cancelled_at: datetime | None


_DERIVED = ("state", "output", "undecodable")
# The fields that are columns of the row.
COLUMNS = tuple(name for name in LiveJob.model_fields if name not in _DERIVED)
_BEFORE, _AFTER = '{"type":"job","job":', "}"


class LiveState(NamedTuple):
    """The state of a job at one moment, as the message that followers get."""

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
    def from_row(cls, row: Row) -> "LiveState":
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
