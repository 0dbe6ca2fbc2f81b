"""Messages of the WebSocket protocol: strict parsing, and error messages."""

import json
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Discriminator, TypeAdapter, ValidationError
from starlette.types import Message

from forge.http.problems.error_handlers import path_of
from forge.http.problems.problem import Fault, Problem, invalid

# Characters or bytes of one message.
MAX_MESSAGE_SIZE = 65_536


class AuthMessage(BaseModel):
    """Authenticates the socket, for clients that cannot send a header."""

    model_config = ConfigDict(extra="forbid")

    type: Literal["auth"]
    token: str


class Subscribe(BaseModel):
    """Follows a job, with a watch token unless the socket is authenticated."""

    model_config = ConfigDict(extra="forbid")

    type: Literal["subscribe"]
    job_id: UUID
    watch_token: str | None = None


class Unsubscribe(BaseModel):
    """Stops following a job."""

    model_config = ConfigDict(extra="forbid")

    type: Literal["unsubscribe"]
    job_id: UUID


ClientMessage = AuthMessage | Subscribe | Unsubscribe
_CLIENT_MESSAGE: TypeAdapter[ClientMessage] = TypeAdapter(
    Annotated[ClientMessage, Discriminator("type")]
)


def read(message: Message) -> ClientMessage:
    """Parse a message, or raise a problem that explains the error."""
    text = message.get("text")
    if text is None:
        raise Problem("bad_request", "the message is binary; send JSON as text")
    try:
        return _CLIENT_MESSAGE.validate_json(text)
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False, include_context=False)
    if any(fault["type"] == "json_invalid" for fault in found):
        raise Problem("bad_request", "the message is not valid JSON")
    raise invalid(map(_fault, found))


def _fault(found: Any) -> Fault:
    """Describe an error without the value, which may be secret."""
    if found["type"].startswith("union_tag"):
        return Fault("$.type", "must be auth, subscribe or unsubscribe")
    # The first element of `loc` is the type of the message.
    return Fault(path_of(("body", *found["loc"][1:])), found["msg"])


def length_of(message: Message) -> int:
    """Return the length of a text or binary message."""
    return len(message.get("text") or message.get("bytes") or "")


def error_message(problem: Problem, job_id: UUID | None = None) -> str:
    """Return a problem as an error message."""
    message: dict[str, Any] = {"type": "error", "code": problem.code, "message": problem.detail}
    if job_id is not None:
        message["job_id"] = str(job_id)
    return json.dumps(message)
