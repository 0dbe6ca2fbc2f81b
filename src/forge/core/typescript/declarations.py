"""Interfaces and type aliases, with descriptions as doc comments."""

import json
from collections.abc import Mapping
from typing import Any

from forge.core.typescript.names import NamedJob, Names
from forge.core.typescript.schema_types import Member, Schema, SchemaTypes, definition_key
from forge.core.typescript.text import INDENT, doc_comment, doc_lines

MAX_LINE = 100
# A longer default says little in a comment.
MAX_DEFAULT = 80


class Declarations:
    """Writes the types of job types and models."""

    def __init__(self, names: Names, definitions: Mapping[str, Schema]) -> None:
        self._names = names
        self._definitions = definitions
        self._types = SchemaTypes(definitions, names.models)

    def of_job(self, job: NamedJob) -> list[str]:
        """Return the declarations of its input and output."""
        return [self._declare(name, self._declared(name, schema)) for name, schema in job.roots]

    def of_models(self) -> list[str]:
        """Return the declarations of all other models."""
        own = {name for job in self._names.jobs for name, _ in job.roots}
        models = sorted((name, key) for key, name in self._names.models.items() if name not in own)
        return [self._declare(name, self._definitions[key]) for name, key in models]

    def _declared(self, name: str, schema: Schema) -> Schema:
        """Return the model that has this name, or the schema."""
        key = definition_key(schema)
        if key is None or self._names.models.get(key) != name:
            return schema
        return self._definitions[key]

    def _declare(self, name: str, schema: Schema) -> str:
        doc = doc_comment(_doc_of(schema))
        if self._types.is_interface(schema):
            return f"{doc}export interface {name} {self._interface_body(schema)}\n"
        found = self._types.type_of(schema)
        line = f"export type {name} = {found};\n"
        if len(line) > MAX_LINE and len(found.alternatives) > 1:
            alternatives = "".join(f"\n{INDENT}| {each}" for each in found.alternatives)
            line = f"export type {name} ={alternatives};\n"
        return doc + line

    def _interface_body(self, schema: Mapping[str, Any]) -> str:
        members = self._types.members(schema) or [Member("[key: string]: never")]
        return "{\n" + "".join(map(_member, members)) + "}"


def _member(member: Member) -> str:
    doc = _doc_of(member.schema, with_default=member.is_optional)
    return f"{doc_comment(doc, INDENT)}{INDENT}{member.text};\n"


def _doc_of(schema: Schema, *, with_default: bool = False) -> list[str]:
    """Return the description of a schema, and what its type leaves out, as tags."""
    if not isinstance(schema, dict):
        return []
    tags = {}
    if schema.get("deprecated") is True:
        tags["deprecated"] = ""
    if isinstance(schema.get("format"), str):
        tags["format"] = schema["format"]
    if with_default and "default" in schema:
        default = json.dumps(schema["default"], ensure_ascii=False)
        if len(default) <= MAX_DEFAULT:
            tags["default"] = default
    description = schema.get("description")
    return doc_lines(description if isinstance(description, str) else None, tags)
