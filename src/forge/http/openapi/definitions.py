"""Paths and schemas of an app's own mutations, actions and job types."""

import re
from collections.abc import Iterable, Mapping
from copy import deepcopy
from typing import Any, Literal, NamedTuple
from urllib.parse import quote

from pydantic import TypeAdapter
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticUserError

from forge.definitions.call import CallDefinition
from forge.http.calls import REFUSED
from forge.http.jobs.job_types import JobTypeOut

Schema = dict[str, Any]


class OpenApiPart(NamedTuple):
    """Entries for `paths` and `components.schemas` of the document."""

    paths: dict[str, Schema]
    schemas: dict[str, Schema]


def describe_calls(calls: Iterable[CallDefinition[Any, Any]]) -> OpenApiPart:
    """Describe every call of an app: `describe_calls(app.calls.values())`."""
    described = OpenApiPart({}, {})
    for definition in calls:
        path = f"/_api/{definition.kind}s/{definition.name}"
        described.paths[path] = {"post": _call_operation(definition, described.schemas)}
    return described


def _call_operation(definition: CallDefinition[Any, Any], schemas: dict[str, Schema]) -> Schema:
    adapter = definition.arguments.adapter
    input_schema = _call_schema(definition, adapter, "validation", schemas) or {"type": "object"}
    output_schema = _call_schema(definition, definition.output_adapter, "serialization", schemas)
    doc = (definition.__doc__ or "").strip()
    operation: Schema = {
        "operationId": f"{definition.kind}.{definition.name}",
        "tags": [f"{definition.kind}s"],
        "summary": doc.partition("\n")[0] or definition.name,
        "requestBody": {
            "required": bool(input_schema.get("required") or "$ref" in input_schema),
            "content": {"application/json": {"schema": input_schema}},
        },
        "responses": {
            "200": {
                "description": "The output.",
                "content": {"application/json": {"schema": output_schema}},
            },
            **{str(status): response for status, response in REFUSED.items()},
        },
        "x-forge-role": definition.role,
    }
    if doc:
        operation["description"] = doc
    return operation


def _call_schema(
    definition: CallDefinition[Any, Any],
    adapter: TypeAdapter[Any] | None,
    mode: Literal["validation", "serialization"],
    schemas: dict[str, Schema],
) -> Schema:
    """Return a schema, and add its definitions to the components."""
    if adapter is None:
        return {}
    prefix = f"{definition.kind}.{definition.name}.{mode}."
    try:
        schema = adapter.json_schema(
            mode=mode, ref_template=f"#/components/schemas/{prefix}{{model}}"
        )
    except (PydanticInvalidForJsonSchema, PydanticUserError):
        return {}  # a type that JSON Schema cannot describe
    for name, inner in schema.pop("$defs", {}).items():
        schemas[prefix + name] = inner
    return schema


GENERIC = "/_api/jobs/{job_type}/"
# Characters that are not allowed in the name of a component.
_NOT_A_NAME = re.compile(r"[^A-Za-z0-9._-]")


def describe_job_types(types: Iterable[JobTypeOut], paths: Mapping[str, Any]) -> OpenApiPart:
    """Describe a dispatch path for every type, with its input schema."""
    described = OpenApiPart({}, {})
    for job_type in types:
        name = f"job.{_NOT_A_NAME.sub('_', job_type.name)}"
        reference = {"$ref": f"#/components/schemas/{name}.input"}
        described.schemas[f"{name}.input"] = _component(job_type.input_schema, f"{name}.input")
        described.schemas[f"{name}.output"] = _component(job_type.output_schema, f"{name}.output")
        for verb, place in (("dispatch", "args"), ("dispatch_many", "inputs")):
            operation = _dispatch_operation(paths[f"{GENERIC}{verb}"]["post"], job_type, verb)
            _set_input(operation, place, reference)
            path = GENERIC.replace("{job_type}", quote(job_type.name, safe="")) + verb
            described.paths[path] = {"post": operation}
    return described


def _dispatch_operation(
    generic: Mapping[str, Any], job_type: JobTypeOut, verb: str
) -> dict[str, Any]:
    operation = deepcopy(dict(generic))
    operation["operationId"] = f"{verb}.{job_type.name}"
    operation["summary"] = f"{verb} {job_type.name}"
    if job_type.description is not None:
        operation["description"] = job_type.description
    operation["tags"] = ["job types"]
    operation["parameters"] = [p for p in operation["parameters"] if p["name"] != "job_type"]
    operation["x-forge-output"] = {
        "$ref": f"#/components/schemas/job.{_NOT_A_NAME.sub('_', job_type.name)}.output"
    }
    return operation


def _set_input(operation: dict[str, Any], place: str, input_schema: dict[str, Any]) -> None:
    """Restrict the input in the generic body to this type's schema."""
    content = operation["requestBody"]["content"]["application/json"]
    own = input_schema if place == "args" else {"type": "array", "items": input_schema}
    content["schema"] = {"allOf": [content["schema"], {"properties": {place: own}}]}


def _component(schema: Mapping[str, Any] | None, name: str) -> Any:
    """Return a type's schema as a component, with its definitions inside the component."""
    if schema is None:
        return {}
    return _with_references(schema, f"#/components/schemas/{name}/$defs/")


def _with_references(value: Any, definitions: str) -> Any:
    match value:
        case dict():
            return {
                key: inner.replace("#/$defs/", definitions)
                if key == "$ref" and isinstance(inner, str)
                else _with_references(inner, definitions)
                for key, inner in value.items()
            }
        case list():
            return [_with_references(inner, definitions) for inner in value]
    return value
