"""The tables of the reference match the code exactly."""

import inspect
import json
import re
from dataclasses import fields
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, get_overloads

import click
import pytest
from pydantic import BaseModel

import forge
from forge import (
    ActionContext,
    ActionDefinition,
    Config,
    JobContext,
    MutationContext,
    MutationDefinition,
)
from forge.cli.main import forge as command_line
from forge.config.server import JwtConfig, TokenConfig
from forge.config.transport import RouteConfig, SqsConfig
from forge.core.duration import format_duration
from forge.core.errors import ForgeError
from forge.core.new_job import DispatchOptions
from forge.core.payload_rules import CATEGORIES
from forge.definitions.call import MakesActions, MakesMutations
from forge.definitions.job import JobDefinition, MakesJobs
from forge.definitions.schedule import ScheduleAttributes
from forge.schedules.app_schedules import Schedules
from forge.schedules.verbs import ScheduleOptions as EnsureOptions
from forge.store.statement import load
from tests.core.schedules.test_cron import TABLE
from tests.surface.pages import CHECKOUT

REFERENCE = CHECKOUT / "docs" / "reference"
SCHEMA = load("schema")


def test_the_documented_job_attributes_are_those_of_the_decorator() -> None:
    parameters = list(inspect.signature(JobDefinition.__init__).parameters.values())[2:]

    rows = table("job.md", "attribute")

    assert {named(row[0]): row[1] for row in rows} == {
        parameter.name: f"`{parameter.default!r}`" for parameter in parameters
    }
    assert all(f"`{category}`" in rows_by_name(rows)["category"][2] for category in CATEGORIES)


@pytest.mark.parametrize(
    ("decorator", "definition"),
    [
        (MakesJobs, JobDefinition),
        (MakesMutations, MutationDefinition),
        (MakesActions, ActionDefinition),
    ],
)
def test_a_decorator_is_typed_with_the_attributes_of_its_definition(
    decorator: type, definition: type
) -> None:
    taken = list(inspect.signature(definition).parameters.values())[1:]

    # A protocol has no implementation with defaults, so only the names are compared.
    call: Any = SimpleNamespace(
        __module__=decorator.__module__, __qualname__=f"{decorator.__name__}.__call__"
    )
    *_, with_attributes = get_overloads(call)

    assert list(inspect.signature(with_attributes).parameters.values())[1:] == taken


def test_the_documented_context_members_exist() -> None:
    # used by the worker itself
    of_notes = {"note", "add_note", "take_note", "put_back", "has_noted", "is_noted_as_it_goes"}
    of_notes |= {"add_lines", "has_logged", "holds_lines", "keeps_log", "take_lines"}
    hidden = {*of_notes, "is_committing", "job", "noting", "lived_at", "run", "stale"}
    hidden |= {"transaction"}
    public = {name for name in dir(JobContext) if not name.startswith("_")} - hidden

    rows = table("context.md", "name") + table("context.md", "attribute")

    assert set(rows_by_name(rows)) == public


def test_the_documented_attributes_of_mutations_and_actions_exist() -> None:
    parameters = list(inspect.signature(MutationDefinition.__init__).parameters.values())[2:]
    shared = list(inspect.signature(ActionDefinition.__init__).parameters)[2:]

    rows = table("mutations.md", "attribute")

    assert {named(row[0]): row[1] for row in rows} == {
        parameter.name: f"`{parameter.default!r}`" for parameter in parameters
    }
    mutations_only = [named(row[0]) for row in rows if row[2].startswith("mutations only")]
    assert shared + mutations_only == [parameter.name for parameter in parameters]


def test_the_documented_context_members_of_mutations_and_actions_exist() -> None:
    public = {
        context: {name for name in dir(context) if not name.startswith("_")} - {"dispatched"}
        for context in (MutationContext, ActionContext)
    }

    rows = rows_by_name(table("mutations.md", "name"))

    assert set(rows) == public[ActionContext]
    assert {name for name in rows if not rows[name][1].startswith("actions only")} == public[
        MutationContext
    ]


def test_the_options_of_dispatch_are_documented() -> None:
    assert list(rows_by_name(table("dispatch.md", "option"))) == list(
        DispatchOptions.__annotations__
    )


def test_every_setting_is_documented_with_its_default() -> None:
    expected: dict[str, str] = {}
    for name, value in Config().to_redacted().items():
        if isinstance(value, dict):
            expected |= {f"[{name}] {key}": written(inner) for key, inner in value.items()}
        else:
            expected[name] = written(value)

    rows = table("configuration.md", "setting")

    assert {row[0].strip("`"): row[1].strip("`") for row in rows} == expected


@pytest.mark.parametrize(
    ("heading", "section"),
    [
        ("`[[auth.tokens]]`", TokenConfig),
        ("`[auth.jwt]`", JwtConfig),
        ("`[transport.sqs]`", SqsConfig),
        ("`[[transport.sqs.routes]]`", RouteConfig),
    ],
)
def test_every_setting_of_a_table_is_documented(heading: str, section: type[BaseModel]) -> None:
    expected = {
        name: "needed" if field.is_required() else f"`{written(field.default)}`"
        for name, field in section.model_fields.items()
    }

    assert {named(row[0]): row[1] for row in table("configuration.md", heading)} == expected


def test_every_command_is_documented() -> None:
    documented = {command_in(row[0]) for row in table("cli.md", "command")}

    assert documented == set(commands(command_line))


@pytest.mark.parametrize("kind", ["table", "function"])
def test_every_table_and_function_is_documented(kind: str) -> None:
    made = set(re.findall(rf"^CREATE {kind.upper()} public\.(forge_\w+)", SCHEMA, re.MULTILINE))

    documented = {name for row in table("tables.md", kind) for name in names(row[0])}

    assert documented == made - {"forge_jobs"}


def test_every_column_of_a_job_is_documented() -> None:
    body = re.search(r"CREATE TABLE public\.forge_jobs \((.*?)\n\)", SCHEMA, re.DOTALL)
    assert body is not None
    columns = set(re.findall(r"^    (\w+) ", body[1], re.MULTILINE)) - {"CONSTRAINT"}

    documented = {name for row in table("tables.md", "column") for name in names(row[0])}

    assert documented == columns


def test_the_documented_attributes_of_schedules_are_those_of_the_decorators() -> None:
    by_type = inspect.signature(forge.schedule).parameters
    by_clock = inspect.signature(forge.cron).parameters
    makers = (JobDefinition, forge.ScheduleDefinition)
    known = {n: p for made in makers for n, p in inspect.signature(made).parameters.items()}
    expected = {n: p for n, p in {**by_clock, **by_type}.items() if p.kind is p.KEYWORD_ONLY}
    expected |= {name: known[name] for name in ScheduleAttributes.__annotations__}

    rows = table("schedules.md", "attribute")

    assert {named(row[0]): row[1] for row in rows} == {
        name: f"`{parameter.default!r}`" for name, parameter in expected.items()
    } | {"type": "`None`"}


def test_the_methods_and_options_of_schedules_are_documented() -> None:
    verbs = {name for name in vars(Schedules) if not name.startswith("_")}

    assert set(rows_by_name(table("schedules.md", "verb"))) == verbs - {
        "carry_out",
        "read",
        "plant",
        "plant_at_start",
        "waking",
    }
    assert list(rows_by_name(table("schedules.md", "option"))) == list(
        EnsureOptions.__annotations__
    )


def test_every_column_of_a_schedule_is_documented() -> None:
    documented = {name for row in table("schedules.md", "column") for name in names(row[0])}

    assert documented == {field.name for field in fields(forge.ScheduleRecord)} - {"undecodable"}


def test_the_routes_of_schedules_are_documented() -> None:
    known = json.loads((REFERENCE / "openapi.json").read_text())["paths"]
    served = {
        f"{method.upper()} {path}"
        for path, methods in known.items()
        for method in methods
        if path.startswith("/_api/schedules")
    }

    assert {row[0].strip("`") for row in table("schedules.md", "route")} == served


def test_the_documented_clock_changes_are_tested() -> None:
    documented = [
        (row[0], row[1].strip("`"), row[3].split(", ")) for row in table("schedules.md", "zone")
    ]

    assert documented == [(zone, expression, times) for zone, expression, _, times in TABLE]


def test_every_error_is_documented() -> None:
    public = [getattr(forge, name) for name in forge.__all__]
    errors = {e.__name__ for e in public if inspect.isclass(e) and issubclass(e, ForgeError)}

    documented = {named(row[0]) for row in table("errors.md", "error")}
    documented |= {
        name for row in table("errors.md", "raise") for name in re.findall(r"`(\w+)", row[0])
    }

    assert documented == errors


def table(page: str, first: str) -> list[list[str]]:
    """Return the rows of the table whose first column has this heading."""
    lines = iter((REFERENCE / page).read_text().splitlines())
    next(line for line in lines if line.startswith(f"| {first} |"))
    next(lines)
    rows = []
    for line in lines:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split(" | ")])
    assert rows
    return rows


def rows_by_name(rows: list[list[str]]) -> dict[str, list[str]]:
    return {named(row[0]): row for row in rows}


def named(cell: str) -> str:
    """Return the name in a cell, without the arguments of a call."""
    return names(cell)[0]


def names(cell: str) -> list[str]:
    return re.findall(r"`(\w+)[^`]*`", cell)


def written(value: Any) -> str:
    match value:
        case None | [] | ():
            return "none"
        case timedelta():
            return format_duration(value)
        case bool():
            return str(value).lower()
        case list():
            return ", ".join(value)
    return str(value)


def commands(group: click.Group, *path: str) -> list[str]:
    found = []
    for name in group.list_commands(click.Context(group)):
        command = group.get_command(click.Context(group), name)
        if isinstance(command, click.Group):
            found += commands(command, *path, name)
        else:
            found.append(" ".join([*path, name]))
    return found


def command_in(cell: str) -> str:
    """Return the command that a cell is about, without its arguments."""
    words = cell.strip("`").split()[1:]
    return " ".join(word for word in words if re.fullmatch(r"[a-z][a-z-]*", word))
