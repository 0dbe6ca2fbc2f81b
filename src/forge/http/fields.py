"""Field types and small shapes that several routes share."""

from datetime import timedelta
from typing import Annotated, Generic, Literal, TypeVar
from uuid import UUID

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    Field,
    PlainSerializer,
    PlainValidator,
    WithJsonSchema,
)

from forge.core.duration import format_duration, parse_duration
from forge.core.new_job import LONGEST_VERSION, check_name

T = TypeVar("T")
UNDECODABLE = "Fields whose stored value cannot be decoded; they are null here."
NEXT_CURSOR = "Pass it as `cursor` to continue; null at the end."

# Durations as everywhere in Forge: "30s", "5m", "2h".
Duration = Annotated[
    timedelta,
    PlainSerializer(format_duration, return_type=str),
    WithJsonSchema(
        {"type": "string", "pattern": r"^-?[0-9]+(us|ms|s|m|h|d)$", "examples": ["30m"]}
    ),
]
Delay = Annotated[
    timedelta,
    PlainValidator(lambda value: parse_duration(value, what="delay", allow_zero=True)),
    WithJsonSchema(
        {"type": "string", "pattern": r"^[0-9]+(us|ms|s|m|h|d)$", "examples": ["30s", "5m", "2h"]}
    ),
]
PriorityValue = Literal[100, 75, 50, 25, 0]
# One literal for names and values, so that errors have the path `$.priority`.
AnyPriority = Literal["critical", "high", "normal", "low", "background", 100, 75, 50, 25, 0]
BigInteger = Annotated[int, Field(ge=-(2**63), lt=2**63, strict=True)]
Moment = Annotated[AwareDatetime, Field(strict=True)]


def _text(value: object) -> object:
    if isinstance(value, str):
        return value
    raise ValueError("write the time as text, such as 2030-01-31T12:00:00Z")


# Not strict: what a route with arguments of its own receives is no JSON text any more.
WrittenTime = Annotated[AwareDatetime, BeforeValidator(_text)]
Id = Annotated[UUID, Field(strict=True)]
Version = Annotated[
    str,
    Field(min_length=1, max_length=LONGEST_VERSION),
    AfterValidator(lambda value: check_name(value, what="it")),
]
Name = Annotated[
    str,
    Field(min_length=1, max_length=255),
    AfterValidator(lambda value: check_name(value, what="it")),
]
# The key of a schedule, which may be empty.
Key = Annotated[
    str,
    Field(max_length=255),
    AfterValidator(lambda value: value and check_name(value, what="it")),
]
# Like Whole, from the text of a query parameter.
TenantId = Annotated[int, Field(ge=-(2**63), lt=2**63)]
# The id of a dead letter or of an audit event.
RowNumber = Annotated[int, Field(ge=1, lt=2**63)]
NumberCursor = Annotated[
    str, Field(pattern="^[0-9]{1,18}$", description="The `next_cursor` of a page.")
]


class Items(BaseModel, Generic[T]):
    """A complete list."""

    items: list[T]
