"""An app whose names and types are hard to write in TypeScript: 300 job types."""

import enum
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any, Generic, Literal, NamedTuple, NotRequired, TypeVar
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, Json, JsonValue, RootModel, create_model
from typing_extensions import TypedDict

from forge import Forge, JobContext

app = Forge()
TYPES = 300
T = TypeVar("T")


class Record(BaseModel):
    """Shadows TypeScript's own name */ export const broken = 1; /* and closes comments."""

    class_: str = Field(alias="class", description='ends with \\ and `*/` and "quotes"')
    first_name: str = Field(alias="first-name")
    number: int = Field(1, alias="1st", deprecated=True)
    proto: str | None = Field(None, alias="__proto__")
    prototype: str = "a\u2028b\u202egpj.exe\x1b"
    new: bool = False
    größe: float = 1.0
    emoji: str = Field("🔨", alias="🔨 hammer\n\"'`${x}")


class Array(BaseModel):
    items: list["Array | Record | None"]
    grid: list[list[int | str]]
    pair: tuple[int | None, Record]
    rest: tuple[int, ...]


class Promise(BaseModel):
    model_config = ConfigDict(extra="allow")

    then: "Promise | None" = None
    values: dict[str, list["Promise"]] = {}


class Function(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Object(BaseModel):
    model_config = ConfigDict(extra="forbid", json_schema_extra={"minProperties": 0})
    empty: Function
    constructor: str
    untyped: Any
    anything: dict


class Colour(enum.Enum):
    RED = "red"
    """A member's docstring."""
    BLUE = 'b"l\\ue'


class Level(enum.IntEnum):
    LOW = -1
    HIGH = 10


class Cat(BaseModel):
    kind: Literal["cat"] = "cat"
    lives: int = 9


class Dog(BaseModel):
    kind: Literal["dog"] = "dog"
    friend: "Pet | None" = None


Pet = Annotated[Cat | Dog, Field(discriminator="kind")]


class Page(BaseModel, Generic[T]):
    items: list[T]
    next: "Page[T] | None" = None


class Point(NamedTuple):
    x: float
    y: float = 0.0


class Options(TypedDict):
    depth: int
    colour: NotRequired[Colour]


@dataclass
class Node:
    name: str
    children: list["Node"] = field(default_factory=list)


class Tree(RootModel[dict[str, "Tree | int"]]):
    pass


class Everything(BaseModel):
    when: datetime
    day: date | None
    lasts: timedelta
    price: Decimal
    raw: bytes
    id: UUID
    level: Level
    counts: dict[Colour, int]
    by_number: dict[int, Pet]
    literal: Literal[1, -2, "a", True, None, "'\"`"]
    parsed: Json[list[int]]
    value: JsonValue
    pet: Pet
    pets: list[Pet]
    point: Point
    options: Options
    node: Node
    tree: Tree
    page: Page[Record]
    other_page: Page[Page[int]]
    named: dict[Annotated[str, Field(pattern="^x-")], float | None]
    odd: dict[str, Any] = Field(
        {},
        json_schema_extra={
            "properties": {"a-b": {"const": {"deep": [1, {"x": None}]}}},
            "allOf": [{"required": ["a-b"]}, {"properties": {"c": {"type": ["string", "null"]}}}],
            "anyOf": [{"$ref": "https://example.com/elsewhere"}, {"type": "object"}],
            "additionalProperties": {"type": "integer"},
        },
    )


class Undescribed(BaseModel):
    act: Callable[[], None]


@app.job(name="billing.export-users", idempotent="input.first-name")
async def billing(ctx: JobContext, input: Record) -> Page[Record]:
    """Close the comment */ and go on. @deprecated

    // @ts-expect-error
    """
    raise NotImplementedError


@app.job(name="default")
async def keyword(ctx: JobContext, input: Array) -> Object:
    raise NotImplementedError


@app.job(name="3d render")
def digit(ctx: JobContext, input: Everything) -> Everything:
    raise NotImplementedError


@app.job(name='größe/🔨"日本語`${x}\\')
def unicode_name(ctx: JobContext, input: Pet) -> Promise | None:
    raise NotImplementedError


@app.job
def no_input(ctx: JobContext) -> None:
    raise NotImplementedError


@app.job
def any_dict(ctx: JobContext, input: dict) -> dict[str, Any]:
    raise NotImplementedError


@app.job
def untyped(ctx, input):  # type: ignore[no-untyped-def]
    raise NotImplementedError


@app.job
def undescribed(ctx: JobContext, input: Undescribed) -> Tree:
    raise NotImplementedError


@app.job(name="__proto__")
def proto(ctx: JobContext, input: Node) -> list[Options]:
    raise NotImplementedError


@app.job(name="constructor")
def constructor(ctx: JobContext, input: Tree) -> tuple[Point, ...]:
    raise NotImplementedError


def _many() -> None:
    for number in range(TYPES - len(app.definitions)):
        model = create_model(f"Item{number}", id=(int, ...), record=(Record | None, None))

        async def handler(ctx: JobContext, input: Any) -> Any: ...

        handler.__annotations__ |= {"input": model, "return": Page[model]}  # type: ignore[valid-type]
        app.job(name=f"many.{number}-type")(handler)


_many()
