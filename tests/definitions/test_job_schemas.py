"""TypeScript types of what handlers take and return: models, dataclasses and plain types."""

import enum
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any, Generic, Literal, NamedTuple, NotRequired, TypeVar
from uuid import UUID

import pytest
from pydantic import BaseModel, ConfigDict, Field, JsonValue, RootModel, computed_field
from typing_extensions import TypedDict

from forge.core.typescript.modules import COPIED, generated_modules
from forge.definitions.job import JobDefinition
from forge.definitions.job_schemas import describe_jobs
from tests.cli.apps import hostile

T = TypeVar("T")


class Format(enum.Enum):
    CSV = "csv"
    XLSX = "xlsx"


class Export(BaseModel):
    """What to export.

    In which format.
    """

    format: Format = Format.CSV
    rows: int | None = None
    since: datetime = Field(description="Only users created since */ then.")
    file_name: str = Field(alias="fileName")


class Node(BaseModel):
    name: str
    children: list["Node"] = []


class Cat(BaseModel):
    kind: Literal["cat"] = "cat"


class Dog(BaseModel):
    kind: Literal["dog"] = "dog"


class Page(BaseModel, Generic[T]):
    items: list[T]


class Money(BaseModel):
    amount: Decimal

    @computed_field  # type: ignore[prop-decorator]
    @property
    def cents(self) -> int:
        return int(self.amount * 100)


class Options(TypedDict):
    depth: int
    format: NotRequired[Format]


@dataclass
class Point:
    x: float
    tags: list[str] = field(default_factory=list)


class Pair(NamedTuple):
    left: int
    right: str = ""


class Names(RootModel[dict[str, list[str]]]):
    pass


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    id: int


def typescript(*handlers: Callable[..., Any]) -> str:
    """Return the generated types and trackers of handlers."""
    jobs, definitions, _ = describe_jobs([JobDefinition(handler) for handler in handlers])
    return generated_modules(jobs, definitions, COPIED)["index.ts"]


def handler(input_type: Any, output_type: Any = None, name: str = "run") -> Callable[..., Any]:
    def run(ctx: Any, input: Any) -> Any: ...

    run.__annotations__ = {"input": input_type, "return": output_type}
    run.__name__ = name
    return run


def test_fields_with_defaults_are_optional_in_inputs_and_present_in_outputs() -> None:
    text = typescript(handler(Export, Export))

    assert EXPORT_INPUT in text
    assert EXPORT_OUTPUT in text


EXPORT_INPUT = """
/**
 * What to export.
 *
 * In which format.
 */
export interface RunInput {
  /** @default "csv" */
  format?: Format;
  /** @default null */
  rows?: number | null;
  /**
   * Only users created since *\\/ then.
   * @format date-time
   */
  since: string;
  fileName: string;
}
"""
EXPORT_OUTPUT = """
export interface RunOutput {
  format: Format;
  rows: number | null;
"""


@pytest.mark.parametrize(
    ("hint", "as_input", "as_output"),
    [
        (str, "string", "string"),
        (int | float, "number", "number"),
        (bool | None, "boolean | null", "boolean | null"),
        (bytes, "string", "string"),
        (date, "string", "string"),
        (timedelta, "string", "string"),
        (UUID, "string", "string"),
        (Decimal, "number | string", "string"),
        (Literal["a", 1, None], '"a" | 1 | null', '"a" | 1 | null'),
        (Any, "unknown", "unknown"),
        (dict, "{ [key: string]: unknown }", "{ [key: string]: unknown }"),
        (dict[str, Any], "{ [key: string]: unknown }", "{ [key: string]: unknown }"),
        (dict[str, int], "{ [key: string]: number }", "{ [key: string]: number }"),
        (list[int | None], "(number | null)[]", "(number | null)[]"),
        (tuple[int, str], "[number, string]", "[number, string]"),
        (tuple[int, ...], "number[]", "number[]"),
    ],
)
def test_plain_types(hint: Any, as_input: str, as_output: str) -> None:
    text = typescript(handler(hint, hint))

    assert f"export type RunInput = {as_input};" in text
    assert f"export type RunOutput = {as_output};" in text


@pytest.mark.parametrize(
    ("hint", "parts"),
    [
        (Options, ["depth: number;", "format?: Format;"]),
        (Point, ["x: number;", "tags?: string[];"]),
        (Open, ["id: number;", "[key: string]: unknown;"]),
        (Page[int], ["items: number[];"]),
        (list[Format], ["RunInput = Format[];", 'Format = "csv" | "xlsx";']),
        (list[Pair], ["RunInput = Pair[];", "Pair = [number, string?];"]),
        (list[Names], ["RunInput = Names[];", "Names = { [key: string]: string[] };"]),
        (list[JsonValue], ["RunInput = JsonValue[];", "JsonValue = unknown;"]),
        (dict[Format, Node], ["{ [K in Format]?: Node };"]),
        (
            Annotated[Cat | Dog, Field(discriminator="kind")],
            ['(Cat & { kind: "cat" }) | (Dog & { kind: "dog" });'],
        ),
    ],
)
def test_models(hint: Any, parts: list[str]) -> None:
    text = typescript(handler(hint))

    assert [part for part in parts if part not in text] == []


def test_a_recursive_model_refers_to_itself() -> None:
    text = typescript(handler(Node))

    assert "export interface Node {\n  name: string;" in text
    assert "children?: Node[];" in text


def test_a_computed_field_is_in_the_output_alone() -> None:
    text = typescript(handler(Money, Money))

    assert "export interface RunInput {\n  amount: number | string;\n}" in text
    assert "export interface RunOutput {\n  amount: string;\n  cents: number;\n}" in text


def test_a_model_that_inputs_and_outputs_share_is_declared_once_per_shape() -> None:
    text = typescript(
        handler(Node, Node, name="walk"),
        handler(list[Node], Page[Node], name="visit"),
        handler(Names, Names, name="call"),
    )

    assert "export type WalkInput = NodeInput;" in text
    assert "export type WalkOutput = NodeOutput;" in text
    assert "export type VisitInput = NodeInput[];" in text
    assert text.count("export interface NodeInput {") == 1
    assert text.count("export type Names = ") == 1


def test_models_of_one_name_get_the_names_of_their_modules() -> None:
    text = typescript(handler(tuple[Node, hostile.Node]))

    assert "export interface TestsDefinitionsTestJobSchemasNode {" in text
    assert "export interface TestsCliAppsHostileNode {" in text


def test_a_job_without_an_input_takes_none() -> None:
    def nightly(ctx: Any) -> None: ...
    def hourly(ctx: Any, _input: None) -> None: ...

    text = typescript(nightly, hourly, handler(None, None))

    assert "JobTracker<void, RunOutput>" in text
    assert "JobTracker<void, NightlyOutput>" in text
    assert "JobTracker<void, HourlyOutput>" in text
    assert "export type NightlyOutput = null;" in text


def test_the_docstring_of_a_handler_describes_its_tracker() -> None:
    def greet(ctx: Any) -> None:
        """Greet a user.

        Politely.
        """

    assert "/**\n * Greet a user.\n *\n * Politely.\n */\nexport function createGreetJob(" in (
        typescript(greet)
    )


def test_a_type_that_json_schema_lacks_is_unknown_and_reported() -> None:
    jobs, _, undescribed = describe_jobs([hostile.undescribed])

    assert jobs[0].input == {}
    assert undescribed == ["the input of undescribed"]


def test_a_rule_for_idempotency_keys_is_known() -> None:
    jobs = describe_jobs([hostile.billing, hostile.no_input]).jobs

    assert {job.name: job.makes_keys for job in jobs} == {
        "billing.export-users": True,
        "no_input": False,
    }
