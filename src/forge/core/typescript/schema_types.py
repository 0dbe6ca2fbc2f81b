"""TypeScript types of JSON Schemas."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from forge.core.typescript.text import json_literal_type, object_type, property_name

Schema = Any
REFERENCE = "#/$defs/"
PRIMITIVES = {
    "string": "string",
    "integer": "number",
    "number": "number",
    "boolean": "boolean",
    "null": "null",
}
# With one of these a schema needs a type alias.
NOT_AN_INTERFACE = {"$ref", "allOf", "anyOf", "const", "enum", "oneOf", "propertyNames"}


class TypeText(NamedTuple):
    """A type as the alternatives of a union; an intersection is one alternative."""

    alternatives: tuple[str, ...]
    is_intersection: bool = False

    def __str__(self) -> str:
        return " | ".join(self.alternatives) or "never"

    @property
    def operand(self) -> str:
        """The type as part of a larger one."""
        is_simple = len(self.alternatives) == 1 and not self.is_intersection
        return str(self) if is_simple or not self.alternatives else f"({self})"


UNKNOWN = TypeText(("unknown",))
NEVER = TypeText(())


class Member(NamedTuple):
    """A member of an object type, with the schema of its value."""

    text: str
    schema: Schema = True
    is_optional: bool = False


class SchemaTypes:
    """Writes types of schemas; `names` has the TypeScript name of each definition."""

    def __init__(self, definitions: Mapping[str, Schema], names: Mapping[str, str]) -> None:
        self._definitions = definitions
        self._names = names

    def type_of(self, schema: Schema) -> TypeText:
        """Return the type of the JSON values that fit a schema; `unknown` for any value."""
        if not isinstance(schema, dict):
            return NEVER if schema is False else UNKNOWN
        if "const" in schema:
            return TypeText((json_literal_type(schema["const"]),))
        if isinstance(schema.get("enum"), list):
            return union(TypeText((json_literal_type(value),)) for value in schema["enum"])
        choices = [self._choice(schema, word) for word in ("oneOf", "anyOf") if word in schema]
        combined = [self._reference(schema)] if "$ref" in schema else []
        combined += [self.type_of(part) for part in schema.get("allOf", ())]
        return intersection([*combined, *choices, self._by_type(schema, combined + choices)])

    def is_interface(self, schema: Schema) -> bool:
        """Whether an interface can declare it: an object with named properties, nothing else."""
        if not isinstance(schema, dict) or schema.keys() & NOT_AN_INTERFACE:
            return False
        return "properties" in schema and schema.get("type", "object") == "object"

    def members(self, schema: Mapping[str, Any]) -> list[Member]:
        """Return the members of an object schema; the index signature comes last."""
        required = schema.get("required", ())
        members = []
        for name, inner in schema.get("properties", {}).items():
            is_optional = name not in required
            mark = "?" if is_optional else ""
            text = f"{property_name(name)}{mark}: {self.type_of(inner)}"
            members.append(Member(text, inner, is_optional))
        signature = self._index_signature(schema, has_properties=bool(members))
        return members + ([Member(signature)] if signature else [])

    def _reference(self, schema: Mapping[str, Any]) -> TypeText:
        name = self._names.get(definition_key(schema) or "")
        return UNKNOWN if name is None else TypeText((name,))

    def _target(self, schema: Schema) -> Schema:
        """Return the schema that a reference names, or the schema itself."""
        return self._definitions.get(definition_key(schema) or "", schema)

    def _choice(self, schema: Mapping[str, Any], word: str) -> TypeText:
        discriminator = schema.get("discriminator", {}).get("propertyName")
        return union(self._tagged(branch, discriminator) for branch in schema[word])

    def _tagged(self, branch: Schema, discriminator: str | None) -> TypeText:
        """Return a branch of a union, which must have the discriminator even if it has a default.

        Forge cannot tell the branches apart without it, and TypeScript cannot narrow the union.
        """
        plain, model = self.type_of(branch), self._target(branch)
        if discriminator is None or not isinstance(model, dict):
            return plain
        tag = model.get("properties", {}).get(discriminator)
        if tag is None or discriminator in model.get("required", ()):
            return plain
        member = f"{property_name(discriminator)}: {self.type_of(tag)}"
        return intersection([plain, TypeText((object_type([member]),))])

    def _by_type(self, schema: Mapping[str, Any], others: Sequence[TypeText]) -> TypeText:
        """Return what the keyword `type` says; nothing more than the other keywords say."""
        named = schema.get("type")
        if named is None:
            named = _implied_type(schema)
        elif named == "object" and others and not _implied_type(schema):
            return UNKNOWN
        if isinstance(named, list):
            return union(self._by_type({**schema, "type": each}, others) for each in named)
        match named:
            case "array":
                return TypeText((self._array(schema),))
            case "object":
                return TypeText((self._object(schema),))
        return TypeText((PRIMITIVES[named],)) if named in PRIMITIVES else UNKNOWN

    def _array(self, schema: Mapping[str, Any]) -> str:
        items = schema.get("items", True)
        if "prefixItems" not in schema:
            return f"{self.type_of(items).operand}[]"
        given: list[Schema] = schema["prefixItems"]
        least = schema.get("minItems", 0)
        elements = [
            self.type_of(item).operand + ("" if index < least else "?")
            for index, item in enumerate(given)
        ]
        if items is not False and schema.get("maxItems", len(given) + 1) > len(given):
            elements.append(f"...{self.type_of(items).operand}[]")
        return f"[{', '.join(elements)}]"

    def _object(self, schema: Mapping[str, Any]) -> str:
        if not schema.get("properties") and (mapped := self._mapped(schema)):
            return mapped
        return object_type(member.text for member in self.members(schema))

    def _mapped(self, schema: Mapping[str, Any]) -> str | None:
        """Return the type of a dict whose keys are the values of an enum."""
        keys = schema.get("propertyNames")
        if not _is_enum_of_texts(self._target(keys)):
            return None
        value = self.type_of(schema.get("additionalProperties", True))
        return f"{{ [K in {self.type_of(keys)}]?: {value} }}"

    def _index_signature(self, schema: Mapping[str, Any], *, has_properties: bool) -> str | None:
        others = schema.get("additionalProperties", "properties" not in schema)
        patterns = [self.type_of(inner) for inner in schema.get("patternProperties", {}).values()]
        if others is False or (patterns and "additionalProperties" not in schema):
            value = union(patterns)
        else:
            value = union([*patterns, self.type_of(others)])
        if not value.alternatives:
            return None
        # An index signature covers the named properties, too, whatever their types are. It is not
        # written as Record<…>, for a model may have that name.
        return f"[key: string]: {UNKNOWN if has_properties else value}"


def definition_key(schema: Schema) -> str | None:
    """Return the key of the definition that a schema refers to; None if it refers to none."""
    reference = schema.get("$ref") if isinstance(schema, dict) else None
    if not isinstance(reference, str) or not reference.startswith(REFERENCE):
        return None
    return reference.removeprefix(REFERENCE)


def union(parts: Iterable[TypeText]) -> TypeText:
    """Return the union of types, without duplicates and with `null` at its end."""
    found = list(parts)
    if UNKNOWN in found:
        return UNKNOWN
    if len(found) == 1:
        return found[0]
    texts = [text for part in found for text in _operands(part)]
    kept = dict.fromkeys(text for text in texts if text != "null")
    return TypeText((*kept, *(["null"] if "null" in texts else [])))


def _operands(part: TypeText) -> tuple[str, ...]:
    return (part.operand,) if part.is_intersection else part.alternatives


def intersection(parts: Iterable[TypeText]) -> TypeText:
    """Return the intersection of types; `unknown` adds nothing."""
    kept = list(dict.fromkeys(part for part in parts if part != UNKNOWN))
    if len(kept) <= 1:
        return kept[0] if kept else UNKNOWN
    return TypeText((" & ".join(part.operand for part in kept),), is_intersection=True)


def _implied_type(schema: Mapping[str, Any]) -> str | None:
    if schema.keys() & {"properties", "additionalProperties", "patternProperties"}:
        return "object"
    return "array" if schema.keys() & {"items", "prefixItems"} else None


def _is_enum_of_texts(schema: Schema) -> bool:
    if not isinstance(schema, dict):
        return False
    values = [schema["const"]] if "const" in schema else schema.get("enum", [])
    return bool(values) and all(isinstance(value, str) for value in values)
