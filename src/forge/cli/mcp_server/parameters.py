"""The JSON Schemas of arguments that several tools take."""

from typing import Any, get_args

from forge.cli.mcp_server.tool import Schema
from forge.core.dead_letter import LetterStatus
from forge.core.lifecycle import State, Status
from forge.core.new_job import LONGEST_REASON
from forge.core.payload_rules import Category
from forge.core.retry import ErrorClass

UUID_PATTERN = "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"
DURATION = "^[0-9]+(us|ms|s|m|h|d)$"
# Rows of a page: fewer than over HTTP, because a model reads all of them.
PAGE, LARGEST_PAGE = 20, 50


def text(description: str, **more: Any) -> Schema:
    return {"type": "string", "minLength": 1, "description": description, **more}


def one_of(values: Any, description: str, **more: Any) -> Schema:
    return text(description, enum=[str(value) for value in values], **more)


def uuid(description: str) -> Schema:
    return {"type": "string", "pattern": UUID_PATTERN, "description": description}


def time(description: str) -> Schema:
    return text(f"{description} ISO 8601 with a time zone.", examples=["2030-01-31T12:00:00Z"])


def duration(description: str) -> Schema:
    return {
        "type": "string",
        "pattern": DURATION,
        "description": f"{description} A number with a unit: us, ms, s, m, h or d.",
        "examples": ["30m"],
    }


JOB_ID = uuid("The id of the job.")
CURSOR = text("The `next_cursor` of the page before, with the same other arguments.")
LIMIT = {"type": "integer", "minimum": 1, "maximum": LARGEST_PAGE, "default": PAGE}
TENANT_ID = {
    "type": "integer",
    "description": "Only rows of this tenant. Leave it out if the token has a tenant.",
}
DLQ_ID = {"type": "integer", "minimum": 1, "description": "The `dlq_id` of the dead letter."}
FINGERPRINT = text("The `fingerprint` of the group, from list_dead_letter_groups.")
REASON = text(
    "Why, in a sentence for people. It is stored in the audit log with the token's name.",
    maxLength=LONGEST_REASON,
    pattern=r"\S",
)
DRY_RUN = {
    "type": "boolean",
    "default": False,
    "description": "Check everything and report what would be done, but change nothing.",
}
PATCH = {
    "type": "object",
    "description": "A JSON merge patch (RFC 7396) of the stored input: only what changes; null "
    "removes a field. Values shown as [redacted] are kept if they are left out.",
}

JOB_FILTER: dict[str, Schema] = {
    "status": one_of(Status, "The exact status."),
    "state": one_of(State, "A coarser status: `queued` is pending, `processing` has a worker."),
    "type": text("The job type."),
    "queue": text("The queue."),
    "since": time("Created at or after this time."),
    "until": time("Created before this time."),
    "tag": text("A tag of the job."),
    "error_class": one_of(get_args(ErrorClass), "The class of the last error."),
    "category": one_of(get_args(Category), "The category of the job type."),
    "idempotency_key": text("The idempotency key of the dispatch."),
    "correlation_id": uuid("Jobs that belong together have the same one."),
    "parent_id": uuid("The job whose handler dispatched them."),
    "retry_of": uuid("The job that they do again."),
    "worker_id": uuid("The worker that claimed them last."),
    "tenant_id": TENANT_ID,
}
LETTER_FILTER: dict[str, Schema] = {
    "status": one_of(get_args(LetterStatus), "The state of the review."),
    "job_type": text("The job type."),
    "category": one_of(get_args(Category), "The category of the job type."),
    "error_class": one_of(get_args(ErrorClass), "The class of the error."),
    "tenant_id": TENANT_ID,
}
WINDOW: dict[str, Schema] = {
    "from": time("The beginning; default: an hour before `to`."),
    "to": time("The end; default: now."),
    "type": text("Only this job type. Not with a token that has a tenant."),
    "queue": text("Only this queue. Not with a token that has a tenant."),
    "tenant_id": TENANT_ID,
}
