"""Every tool describes its route as the OpenAPI document does; results fit."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from forge.cli.mcp_server.parameters import LARGEST_PAGE
from forge.cli.mcp_server.reading import READING
from forge.cli.mcp_server.result_text import MAX_CHARACTERS, result_text
from forge.cli.mcp_server.server import described
from forge.cli.mcp_server.tool import ApiTool
from forge.cli.mcp_server.writing import WRITING
from forge.http.auth.permissions import PERMISSIONS, Tenancy
from tests.surface.pages import CHECKOUT
from tests.surface.test_reference import table

DOCUMENT = json.loads((CHECKOUT / "docs" / "reference" / "openapi.json").read_text())
TOOLS = (*READING, *WRITING)


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_a_tool_takes_what_its_route_takes(tool: ApiTool) -> None:
    taken = parameters_of(tool.route)

    for name, schema in tool.properties.items():
        if name == "input" and "input.*" in taken:  # one parameter for each of its values
            continue
        known = taken[tool.sent_as.get(name, name)]
        enum = known.get("enum")
        assert enum is None or set(schema["enum"]) == set(enum), name
        assert schema.get("default") == known.get("default") or name == "limit"
        assert schema["type"] in known.get("type", schema["type"]), name
    assert set(tool.defaults) <= set(taken)
    assert {name for name in taken if taken[name]["required"]} <= {
        tool.sent_as.get(name, name) for name in tool.required
    }


def test_names_are_unique_and_schemas_valid() -> None:
    assert len({tool.name for tool in TOOLS}) == len(TOOLS)
    for tool in TOOLS:
        Draft202012Validator.check_schema(tool.input_schema)
        assert tool.properties.get("limit", {}).get("maximum", LARGEST_PAGE) <= 50


def test_hints_and_reasons_are_those_of_what_a_tool_does() -> None:
    hints = {tool.name: described(tool).annotations for tool in TOOLS}

    for tool in READING:
        assert hints[tool.name].read_only_hint, tool.name  # type: ignore[union-attr]
        assert "reason" not in tool.properties
    for tool in WRITING:
        assert not hints[tool.name].read_only_hint, tool.name  # type: ignore[union-attr]
        assert "reason" in tool.required
    assert {name for name, hint in hints.items() if hint and hint.destructive_hint} == {
        "cancel_job",
        "discard_dead_letter",
        "discard_dead_letter_group",
    }


@pytest.mark.parametrize(("first", "tools"), [("reading", READING), ("writing", WRITING)])
def test_the_reference_lists_every_tool_with_its_route_and_callers(
    first: str, tools: Sequence[ApiTool]
) -> None:
    rows = {row[0]: tuple(row[2:]) for row in table("mcp.md", first)}

    assert rows == {f"`{tool.name}`": (f"`{tool.route}`", who(tool)) for tool in tools}


def who(tool: ApiTool) -> str:
    permission = PERMISSIONS[tool.route]
    only = ", without a tenant" if permission.tenancy is Tenancy.OPERATOR else ""
    return f"{permission.who}{only}"


@pytest.mark.parametrize(
    "large",
    [
        {"input": "x" * 10**6},
        {"items": [{"id": n, "error": "x" * 900} for n in range(200)]},
        {"input": {str(n): [n] * 50 for n in range(5_000)}},
        {"input": [[["x" * 60] * 100] * 100] * 100},
        ["x"] * 10**6,
    ],
    ids=["text", "rows", "object", "lists", "list"],
)
def test_a_large_result_is_shortened_and_says_so(large: Any) -> None:
    found = result_text(large)

    assert found.is_shortened
    assert len(found.text) <= MAX_CHARACTERS + 50
    assert "more)" in found.text


def test_only_nulls_of_rows_and_watch_tokens_are_left_out() -> None:
    job = {"id": 1, "output": None, "watch_token": "wt", "input": {"note": None}}

    assert result_text(job) == ('{"id":1,"input":{"note":null}}', False)
    assert json.loads(result_text({"items": [job], "next_cursor": None}).text) == {
        "items": [{"id": 1, "input": {"note": None}}]
    }


def parameters_of(route: str) -> Mapping[str, dict[str, Any]]:
    """Return the schema of each parameter and field of a route."""
    method, path = route.split(" ")
    operation = DOCUMENT["paths"][path][method.lower()]
    found = {each["name"]: each for each in operation.get("parameters", [])}
    taken = {
        name: flat(each["schema"]) | {"required": each.get("required")}
        for name, each in found.items()
    }
    for body in flatten(_body(operation)):
        for name, schema in body.get("properties", {}).items():
            taken[name] = flat(schema) | {"required": name in body.get("required", ())}
    return taken


def flat(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema without its alternative null."""
    merged = dict(schema)
    for each in flatten(schema):
        merged |= each
    return merged


def flatten(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    if "$ref" in schema:
        schema = DOCUMENT["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    if "anyOf" not in schema:
        if schema.get("type") != "null":
            yield schema
        return
    for each in schema["anyOf"]:
        yield from flatten(each)


def _body(operation: Mapping[str, Any]) -> Mapping[str, Any]:
    content = operation.get("requestBody", {}).get("content", {})
    schema: Mapping[str, Any] = content.get("application/json", {}).get("schema", {})
    return schema
