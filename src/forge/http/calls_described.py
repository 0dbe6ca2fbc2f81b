"""Each mutation and action in the OpenAPI document: a path of its own with its own types."""

from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

from pydantic import TypeAdapter
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticUserError

from forge.calls.definition import CallDefinition
from forge.http.calls import REFUSED

Schema = dict[str, Any]


class Described(NamedTuple):
    """What goes into the document's `paths` and `components.schemas`."""

    paths: dict[str, Schema]
    schemas: dict[str, Schema]


def describe(calls: Iterable[CallDefinition[Any, Any]]) -> Described:
    """Describe every call of an app: `describe(app.calls.values())`."""
    described = Described({}, {})
    for definition in calls:
        path = f"/_api/{definition.kind}s/{definition.name}"
        described.paths[path] = {"post": _operation(definition, described.schemas)}
    return described


def _operation(definition: CallDefinition[Any, Any], schemas: dict[str, Schema]) -> Schema:
    taken = definition.arguments.adapter
    input_schema = _schema(definition, taken, "validation", schemas) or {"type": "object"}
    output_schema = _schema(definition, definition.output_adapter, "serialization", schemas)
    doc = (definition.__doc__ or "").strip()
    told: Schema = {
        "operationId": f"{definition.kind}.{definition.name}",
        "tags": [f"{definition.kind}s"],
        "summary": doc.partition("\n")[0] or definition.name,
        "requestBody": {
            "required": bool(input_schema.get("required") or "$ref" in input_schema),
            "content": {"application/json": {"schema": input_schema}},
        },
        "responses": {
            "200": {
                "description": "What it returned.",
                "content": {"application/json": {"schema": output_schema}},
            },
            **{str(status): said for status, said in REFUSED.items()},
        },
        "x-forge-role": definition.role,
    }
    if doc:
        told["description"] = doc
    return told


def _schema(
    definition: CallDefinition[Any, Any],
    adapter: TypeAdapter[Any] | None,
    mode: Literal["validation", "serialization"],
    schemas: dict[str, Schema],
) -> Schema:
    """Return a type's schema, what it refers to being put among the components."""
    if adapter is None:
        return {}
    prefix = f"{definition.kind}.{definition.name}.{mode}."
    try:
        schema = adapter.json_schema(
            mode=mode, ref_template=f"#/components/schemas/{prefix}{{model}}"
        )
    except (PydanticInvalidForJsonSchema, PydanticUserError):
        return {}  # a type that JSON Schema has no words for is checked by its own code alone
    for name, inner in schema.pop("$defs", {}).items():
        schemas[prefix + name] = inner
    return schema
