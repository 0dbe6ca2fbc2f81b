"""Problem details (RFC 9457): every error has a stable code, a status and a title."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from pydantic import BaseModel, Field
from starlette.responses import JSONResponse

from forge.core.errors import Fault as Fault
from forge.core.errors import InvalidPayload

MEDIA_TYPE = "application/problem+json"
PROBLEM_SCHEMA = {"$ref": "#/components/schemas/Problem"}
# Faults that a response lists: more would block the event loop.
MAX_FAULTS = 100


class ProblemType(NamedTuple):
    """The status, title and meaning of a problem code."""

    status: int
    title: str
    meaning: str


# The codes are part of the API: clients branch on them. A test compares docs/reference/errors.md.
PROBLEM_TYPES: Mapping[str, ProblemType] = {
    "bad_request": ProblemType(400, "Bad request", "The request is not valid HTTP or JSON."),
    "unauthenticated": ProblemType(401, "No valid token", "Send `Authorization: Bearer <token>`."),
    "forbidden": ProblemType(403, "Not allowed", "The token lacks the required role."),
    "read_only": ProblemType(
        403, "Read-only", "The server accepts no changes: `[server] read_only` is set."
    ),
    "priority_too_high": ProblemType(
        403, "Priority too high", "The priority is higher than that of the job type."
    ),
    "not_found": ProblemType(404, "Not found", "It does not exist, or belongs to another tenant."),
    "unknown_job_type": ProblemType(
        404, "Unknown job type", "No job type of this name is registered."
    ),
    "method_not_allowed": ProblemType(
        405, "Method not allowed", "The path exists, but not for this method."
    ),
    "request_timeout": ProblemType(
        408, "Request timeout", "The client took too long to send the request."
    ),
    "conflict": ProblemType(409, "Conflict", "The current status does not allow this."),
    "too_large": ProblemType(413, "Too large", "The body exceeds the server's limit."),
    "unsupported_media_type": ProblemType(
        415, "Not JSON", "Send `Content-Type: application/json`."
    ),
    "invalid": ProblemType(
        422, "Invalid", "A value is invalid; `errors` has the path of each fault."
    ),
    "headers_too_large": ProblemType(
        431, "Headers too large", "The headers exceed `max_header_bytes`."
    ),
    "too_many": ProblemType(
        429, "Too many", "A limit is reached; try again after `Retry-After` seconds."
    ),
    "internal": ProblemType(
        500, "Internal error", "An error of the server; its log has the details."
    ),
    "unavailable": ProblemType(
        503,
        "Unavailable",
        "The server or its database is unavailable; try again after `Retry-After`.",
    ),
    "timed_out": ProblemType(
        504, "Timed out", "The mutation or action timed out; a mutation wrote nothing."
    ),
}


class FaultOut(BaseModel):
    """An invalid value and its path in the request."""

    path: str = Field(examples=["$.args.format"])
    message: str


class ProblemOut(BaseModel):
    """An error: RFC 9457."""

    type: str
    title: str
    status: int
    code: str = Field(description="Stable; clients can branch on it.")
    detail: str
    errors: list[FaultOut] = Field([], description="With code `invalid`: each fault.")


class Problem(Exception):
    """An error response that says what happened and what to do."""

    def __init__(
        self,
        code: str,
        detail: str,
        *,
        errors: Sequence[Fault] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail
        self.errors = tuple(errors)
        self.headers = dict(headers or {})

    @property
    def type(self) -> ProblemType:
        return PROBLEM_TYPES[self.code]

    @property
    def status(self) -> int:
        return self.type.status

    def body(self) -> dict[str, Any]:
        problem_type = self.type
        body: dict[str, Any] = {
            "type": "about:blank",
            "title": problem_type.title,
            "status": problem_type.status,
            "code": self.code,
            "detail": self.detail,
        }
        if self.errors:
            body["errors"] = [fault._asdict() for fault in self.errors]
        return body

    def answer(self) -> JSONResponse:
        return JSONResponse(self.body(), self.status, self.headers, media_type=MEDIA_TYPE)


def invalid(faults: Iterable[Fault]) -> Problem:
    """Return a 422 with these faults; the detail has the first three."""
    listed = list(islice(faults, MAX_FAULTS))
    detail = "; ".join(f"{fault.path}: {fault.message}" for fault in listed[:3])
    return Problem("invalid", detail, errors=listed)


def faults_at(place: str, error: InvalidPayload) -> list[Fault]:
    """Return the faults of a payload with their paths in the request."""
    return [Fault(place + fault.path.removeprefix("$"), fault.message) for fault in error.faults]


def problems(*codes: str) -> dict[int | str, dict[str, Any]]:
    """Return the OpenAPI `responses` of a route with these problem codes."""
    by_status: dict[int | str, dict[str, Any]] = {}
    for code in codes:
        status, _, meaning = PROBLEM_TYPES[code]
        text = f"`{code}`: {meaning}"
        known = by_status.get(status)
        by_status[status] = {
            "description": f"{known['description']} {text}" if known else text,
            "content": {MEDIA_TYPE: {"schema": PROBLEM_SCHEMA}},
        }
    return by_status
