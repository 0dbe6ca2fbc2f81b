"""Problem details (RFC 9457): every error has a stable code, a status and a title."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from starlette.responses import JSONResponse

from forge.core.errors import Fault as Fault
from forge.core.errors import InvalidPayload

MEDIA_TYPE = "application/problem+json"
# So many faults of a request are told: finding and writing the rest would keep others waiting.
MOST_FAULTS = 100


class Kind(NamedTuple):
    """One kind of error that the API answers with."""

    status: int
    title: str
    meaning: str


# The codes are contract: clients branch on them. docs/reference/errors.md is compared with this.
KINDS: Mapping[str, Kind] = {
    "bad_request": Kind(400, "Bad request", "The request is not HTTP or JSON that can be read."),
    "unauthenticated": Kind(401, "No valid token", "Send `Authorization: Bearer <token>`."),
    "forbidden": Kind(403, "Not allowed", "The token lacks the role that this needs."),
    "priority_too_high": Kind(403, "Priority too high", "Callers may not exceed their type's."),
    "not_found": Kind(404, "Not found", "There is no such thing, or it is another tenant's."),
    "unknown_job_type": Kind(404, "Unknown job type", "Nobody registered a type of this name."),
    "method_not_allowed": Kind(405, "Method not allowed", "The path exists, for other methods."),
    "request_timeout": Kind(408, "Request timeout", "The client took too long to send it."),
    "conflict": Kind(409, "Conflict", "The thing's present status does not allow this."),
    "too_large": Kind(413, "Too large", "The body is larger than the server takes."),
    "unsupported_media_type": Kind(415, "Not JSON", "Send `Content-Type: application/json`."),
    "invalid": Kind(422, "Invalid", "A value is refused; `errors` has the path of each fault."),
    "headers_too_large": Kind(431, "Headers too large", "The headers exceed `max_header_bytes`."),
    "too_many": Kind(429, "Too many", "A limit is reached; try again after `Retry-After` seconds."),
    "internal": Kind(500, "Internal error", "A fault of the server; its log says more."),
    "unavailable": Kind(
        503, "Unavailable", "The server or its database cannot serve this now; see `Retry-After`."
    ),
    "timed_out": Kind(504, "Timed out", "What was called took too long; a mutation wrote nothing."),
}


class Problem(Exception):
    """An answer that says what went wrong and what to do."""

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
    def kind(self) -> Kind:
        return KINDS[self.code]

    @property
    def status(self) -> int:
        return self.kind.status

    def body(self) -> dict[str, Any]:
        kind = self.kind
        body: dict[str, Any] = {
            "type": "about:blank",
            "title": kind.title,
            "status": kind.status,
            "code": self.code,
            "detail": self.detail,
        }
        if self.errors:
            body["errors"] = [fault._asdict() for fault in self.errors]
        return body

    def answer(self) -> JSONResponse:
        return JSONResponse(self.body(), self.status, self.headers, media_type=MEDIA_TYPE)


def invalid(faults: Iterable[Fault]) -> Problem:
    """Refuse what has these faults; the detail tells of the first."""
    told = list(islice(faults, MOST_FAULTS))
    detail = "; ".join(f"{fault.path}: {fault.message}" for fault in told[:3])
    return Problem("invalid", detail, errors=told)


def faults_at(place: str, error: InvalidPayload) -> list[Fault]:
    """Return the faults of a payload as they lie in the request that holds it at this place."""
    return [Fault(place + fault.path.removeprefix("$"), fault.message) for fault in error.faults]
