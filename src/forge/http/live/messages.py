"""Messages of the WebSocket protocol: strict parsing, error messages, and their schemas."""

import json
from typing import Annotated, Any, Literal, NotRequired
from uuid import UUID

from pydantic import (
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    TypeAdapter,
    ValidationError,
)
from starlette.types import Message
from typing_extensions import TypedDict

from forge.core.job_filter import JobCriteria
from forge.core.lifecycle import State, Status
from forge.core.payload_rules import Category
from forge.core.retry import ErrorClass
from forge.http.fields import AnyPriority, BigInteger, Name
from forge.http.live.view import LiveJob
from forge.http.problems.error_handlers import path_of
from forge.http.problems.problem import Fault, Problem, invalid

# Characters or bytes of one message.
MAX_MESSAGE_SIZE = 65_536


class AuthMessage(BaseModel):
    """Authenticates the socket, for clients that cannot send a header."""

    model_config = ConfigDict(extra="forbid")

    type: Literal["auth"]
    token: str


def _without_default(schema: dict[str, Any]) -> None:
    """Drop the default null: generated TypeScript would require the field."""
    del schema["default"]


def _all_optional(schema: dict[str, Any]) -> None:
    for field in schema["properties"].values():
        _without_default(field)


class SubscribeMessage(BaseModel):
    """Follows a job, with a watch token unless the socket is authenticated."""

    model_config = ConfigDict(extra="forbid")

    type: Literal["subscribe"]
    job_id: UUID
    watch_token: str | None = Field(None, json_schema_extra=_without_default)


class UnsubscribeMessage(BaseModel):
    """Stops following a job."""

    model_config = ConfigDict(extra="forbid")

    type: Literal["unsubscribe"]
    job_id: UUID


ListId = Annotated[str, Field(min_length=1, max_length=100)]


class ListFilter(BaseModel):
    """The filters of `GET /_api/jobs`, except `q` and `input.…`."""

    model_config = ConfigDict(extra="forbid", json_schema_extra=_all_optional)

    status: Status | None = None
    state: State | None = None
    type: Name | None = None
    queue: Name | None = None
    priority: AnyPriority | None = None
    since: AwareDatetime | None = None
    until: AwareDatetime | None = None
    category: Category | None = None
    correlation_id: UUID | None = None
    parent_id: UUID | None = None
    retry_of: UUID | None = None
    tenant_id: BigInteger | None = None
    worker_id: UUID | None = None
    tag: Name | None = None
    error_class: ErrorClass | None = None
    idempotency_key: Name | None = None

    def criteria(self) -> JobCriteria:
        """Return the conditions as filters in Python have them."""
        criteria: Any = self.model_dump()
        return criteria  # type: ignore[no-any-return]


class SubscribeListMessage(BaseModel):
    """Follows the newest jobs that match a filter, under an id that the client chooses."""

    model_config = ConfigDict(extra="forbid")

    type: Literal["subscribe"]
    id: ListId
    filter: ListFilter


class UnsubscribeListMessage(BaseModel):
    """Stops following a list."""

    model_config = ConfigDict(extra="forbid")

    type: Literal["unsubscribe"]
    id: ListId


class JobMessage(TypedDict):
    """The state of a followed job: immediately, and after each change."""

    type: Literal["job"]
    job: LiveJob


class ChangedMessage(TypedDict):
    """A followed list may differ from before: read it again. At most once a second."""

    type: Literal["changed"]
    id: str


class ErrorMessage(TypedDict):
    """An error; with `job_id` or `id`, that job or list is not or no longer followed."""

    type: Literal["error"]
    code: str
    message: str
    job_id: NotRequired[UUID]
    id: NotRequired[str]


class LiveProblem(TypedDict):
    """Why an event stream has ended before the job."""

    code: str
    message: str
    job_id: UUID


ClientMessage = (
    AuthMessage
    | SubscribeMessage
    | UnsubscribeMessage
    | SubscribeListMessage
    | UnsubscribeListMessage
)
ServerMessage = JobMessage | ChangedMessage | ErrorMessage


def _kind(message: Any) -> str | None:
    """Tell messages about lists from those about jobs, which have the same types."""
    if not isinstance(message, dict):
        return None
    kind = message.get("type")
    is_of_list = kind in ("subscribe", "unsubscribe") and not {"id", "filter"}.isdisjoint(message)
    return f"{kind} list" if is_of_list else kind if isinstance(kind, str) else None


_CLIENT_MESSAGE: TypeAdapter[ClientMessage] = TypeAdapter(
    Annotated[
        Annotated[AuthMessage, Tag("auth")]
        | Annotated[SubscribeMessage, Tag("subscribe")]
        | Annotated[UnsubscribeMessage, Tag("unsubscribe")]
        | Annotated[SubscribeListMessage, Tag("subscribe list")]
        | Annotated[UnsubscribeListMessage, Tag("unsubscribe list")],
        Discriminator(_kind),
    ]
)
_SERVER_MESSAGE: TypeAdapter[ServerMessage] = TypeAdapter(
    Annotated[ServerMessage, Discriminator("type")]
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


def changed_message(list_id: str) -> str:
    """Return the message that a list has changed."""
    return json.dumps(ChangedMessage(type="changed", id=list_id))


def error_message(
    problem: Problem, job_id: UUID | None = None, *, list_id: str | None = None
) -> str:
    """Return a problem as an error message."""
    message = ErrorMessage(type="error", code=problem.code, message=problem.detail)
    if job_id is not None:
        message["job_id"] = job_id
    if list_id is not None:
        message["id"] = list_id
    return json.dumps(message, default=str)


def live_problem(problem: Problem, job_id: UUID) -> str:
    """Return a problem as the data of an event."""
    data = LiveProblem(code=problem.code, message=problem.detail, job_id=job_id)
    return json.dumps(data, default=str)


def message_schemas(ref_template: str) -> dict[str, Any]:
    """Return the schemas of all messages and of the data of events, by name."""
    schemas: dict[str, Any] = {}
    for name, schema in {
        "ClientMessage": _CLIENT_MESSAGE.json_schema(ref_template=ref_template),
        "ServerMessage": _SERVER_MESSAGE.json_schema(
            ref_template=ref_template, mode="serialization"
        ),
        "LiveProblem": TypeAdapter(LiveProblem).json_schema(mode="serialization"),
    }.items():
        schemas |= schema.pop("$defs", {})
        schemas[name] = schema
    return schemas
