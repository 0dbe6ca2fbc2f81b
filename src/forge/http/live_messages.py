"""What a client may say on a socket, read strictly, and how it is told that something is wrong."""

import json
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Discriminator, TypeAdapter, ValidationError
from starlette.types import Message

from forge.http.problem import Fault, Problem, invalid
from forge.http.refusals import path_of

# What a client may say at once.
LARGEST = 65_536


class Auth(BaseModel):
    """Who speaks, where no header could say it."""

    model_config = ConfigDict(extra="forbid")

    type: Literal["auth"]
    token: str


class Subscribe(BaseModel):
    """Which job is to be followed, and by which right if it is not the socket's own."""

    model_config = ConfigDict(extra="forbid")

    type: Literal["subscribe"]
    job_id: UUID
    watch_token: str | None = None


class Unsubscribe(BaseModel):
    """Which job is followed no more."""

    model_config = ConfigDict(extra="forbid")

    type: Literal["unsubscribe"]
    job_id: UUID


Said = Auth | Subscribe | Unsubscribe
_SAID: TypeAdapter[Said] = TypeAdapter(Annotated[Said, Discriminator("type")])


def read(message: Message) -> Said:
    """Read what a client said, or raise a problem that tells what is wrong with it."""
    text = message.get("text")
    if text is None:
        raise Problem("bad_request", "this is binary; send JSON as text")
    try:
        return _SAID.validate_json(text)
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False, include_context=False)
    if any(fault["type"] == "json_invalid" for fault in found):
        raise Problem("bad_request", "this is not JSON that can be read; correct it")
    raise invalid(map(_fault, found))


def _fault(found: Any) -> Fault:
    """Say what is wrong, and not what was sent."""
    if found["type"].startswith("union_tag"):
        return Fault("$.type", "must be auth, subscribe or unsubscribe")
    # The first step is the type of the message, which is no place in it.
    return Fault(path_of(("body", *found["loc"][1:])), found["msg"])


def length_of(message: Message) -> int:
    """Return how long a message is, text or not."""
    return len(message.get("text") or message.get("bytes") or "")


def error_message(problem: Problem, job_id: UUID | None = None) -> str:
    """Write what went wrong as the message that is sent."""
    told: dict[str, Any] = {"type": "error", "code": problem.code, "message": problem.detail}
    if job_id is not None:
        told["job_id"] = str(job_id)
    return json.dumps(told)
