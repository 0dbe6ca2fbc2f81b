"""Each job type in the OpenAPI document: paths of its own to dispatch it, with its own input."""

import re
from collections.abc import Iterable, Mapping
from copy import deepcopy
from typing import Any
from urllib.parse import quote

from forge.http.calls_described import Described
from forge.http.shapes import JobTypeOut

GENERIC = "/_api/jobs/{job_type}/"
# The characters that the name of a component may have.
_NOT_A_NAME = re.compile(r"[^A-Za-z0-9._-]")


def describe_types(types: Iterable[JobTypeOut], paths: Mapping[str, Any]) -> Described:
    """Describe the dispatch of every type as that of any type, with the type's own input."""
    described = Described({}, {})
    for kind in types:
        name = f"job.{_NOT_A_NAME.sub('_', kind.name)}"
        reference = {"$ref": f"#/components/schemas/{name}.input"}
        described.schemas[f"{name}.input"] = _schema(kind.input_schema, f"{name}.input")
        described.schemas[f"{name}.output"] = _schema(kind.output_schema, f"{name}.output")
        for verb, place in (("dispatch", "args"), ("dispatch_many", "inputs")):
            operation = _operation(paths[f"{GENERIC}{verb}"]["post"], kind, verb)
            _put(operation, place, reference)
            path = GENERIC.replace("{job_type}", quote(kind.name, safe="")) + verb
            described.paths[path] = {"post": operation}
    return described


def _operation(generic: Mapping[str, Any], kind: JobTypeOut, verb: str) -> dict[str, Any]:
    operation = deepcopy(dict(generic))
    operation["operationId"] = f"{verb}.{kind.name}"
    operation["summary"] = f"{verb} {kind.name}"
    operation["tags"] = ["job types"]
    operation["parameters"] = [p for p in operation["parameters"] if p["name"] != "job_type"]
    operation["x-forge-output"] = {
        "$ref": f"#/components/schemas/job.{_NOT_A_NAME.sub('_', kind.name)}.output"
    }
    return operation


def _put(operation: dict[str, Any], place: str, input_schema: dict[str, Any]) -> None:
    """Say of the generic body that its input is of this type."""
    content = operation["requestBody"]["content"]["application/json"]
    own = input_schema if place == "args" else {"type": "array", "items": input_schema}
    content["schema"] = {"allOf": [content["schema"], {"properties": {place: own}}]}


def _schema(schema: Mapping[str, Any] | None, name: str) -> Any:
    """Return a type's schema as a component; what it defines inside lies inside the component."""
    if schema is None:
        return {}
    return _moved(schema, f"#/components/schemas/{name}/$defs/")


def _moved(value: Any, definitions: str) -> Any:
    match value:
        case dict():
            return {
                key: inner.replace("#/$defs/", definitions)
                if key == "$ref" and isinstance(inner, str)
                else _moved(inner, definitions)
                for key, inner in value.items()
            }
        case list():
            return [_moved(inner, definitions) for inner in value]
    return value
