"""TypeScript types of JSON Schemas, keyword by keyword."""

from typing import Any

import pytest

from forge.core.typescript.schema_types import SchemaTypes

DEFINITIONS: dict[str, Any] = {
    "Cat": {"type": "object", "properties": {"kind": {"const": "cat"}}},
    "Dog": {"type": "object", "properties": {"kind": {"const": "dog"}}, "required": ["kind"]},
    "Color": {"enum": ["red", "blue"]},
    "Level": {"enum": [1, 2]},
}
TYPES = SchemaTypes(DEFINITIONS, {key: key for key in DEFINITIONS})
CAT, DOG = {"$ref": "#/$defs/Cat"}, {"$ref": "#/$defs/Dog"}
TEXT, WHOLE, NULL = {"type": "string"}, {"type": "integer"}, {"type": "null"}


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({}, "unknown"),
        (True, "unknown"),
        (False, "never"),
        ({"type": "string", "format": "date-time"}, "string"),
        ({"type": "integer"}, "number"),
        ({"type": "number"}, "number"),
        ({"type": "boolean"}, "boolean"),
        ({"type": ["string", "null"]}, "string | null"),
        ({"type": "no such type"}, "unknown"),
        ({"const": "csv"}, '"csv"'),
        ({"enum": ["a", None, 1, True]}, '"a" | 1 | true | null'),
        ({"enum": []}, "never"),
        (CAT, "Cat"),
        ({"$ref": "#/$defs/Nothing"}, "unknown"),
        ({"$ref": "https://example.com/schema"}, "unknown"),
        ({"description": "with siblings", **CAT}, "Cat"),
    ],
)
def test_simple_types(schema: Any, expected: str) -> None:
    assert str(TYPES.type_of(schema)) == expected


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"anyOf": [TEXT, NULL]}, "string | null"),
        ({"anyOf": [NULL, TEXT, TEXT]}, "string | null"),
        ({"anyOf": [TEXT, {}]}, "unknown"),
        ({"oneOf": [CAT, {"anyOf": [DOG, NULL]}]}, "Cat | Dog | null"),
        ({"allOf": [CAT, DOG]}, "Cat & Dog"),
        ({"allOf": [CAT, {"anyOf": [DOG, NULL]}]}, "Cat & (Dog | null)"),
        ({"anyOf": [{"allOf": [CAT, DOG]}, NULL]}, "(Cat & Dog) | null"),
        ({"allOf": [CAT]}, "Cat"),
        ({"allOf": [CAT, {"required": ["kind"]}]}, "Cat"),
        ({"type": "object", "allOf": [CAT]}, "Cat"),
        ({"properties": {"a": TEXT}, **CAT}, "Cat & { a?: string }"),
    ],
)
def test_combined_types(schema: Any, expected: str) -> None:
    assert str(TYPES.type_of(schema)) == expected


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "array"}, "unknown[]"),
        ({"type": "array", "items": TEXT}, "string[]"),
        ({"type": "array", "items": {"anyOf": [TEXT, NULL]}}, "(string | null)[]"),
        ({"type": "array", "items": {"type": "array", "items": WHOLE}}, "number[][]"),
        ({"type": "array", "items": {"allOf": [CAT, DOG]}}, "(Cat & Dog)[]"),
        (
            {"type": "array", "prefixItems": [TEXT, WHOLE], "minItems": 2, "maxItems": 2},
            "[string, number]",
        ),
        (
            {"type": "array", "prefixItems": [TEXT, WHOLE], "minItems": 1, "maxItems": 2},
            "[string, number?]",
        ),
        (
            {"prefixItems": [{"anyOf": [TEXT, NULL]}], "items": WHOLE, "minItems": 0},
            "[(string | null)?, ...number[]]",
        ),
        ({"prefixItems": [TEXT], "items": False, "minItems": 1}, "[string]"),
    ],
)
def test_arrays_and_tuples(schema: Any, expected: str) -> None:
    assert str(TYPES.type_of(schema)) == expected


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "object"}, "{ [key: string]: unknown }"),
        ({"type": "object", "additionalProperties": WHOLE}, "{ [key: string]: number }"),
        ({"type": "object", "patternProperties": {"^x": WHOLE}}, "{ [key: string]: number }"),
        (
            {"type": "object", "properties": {"a": TEXT, "b-c": WHOLE}, "required": ["a"]},
            '{ a: string; "b-c"?: number }',
        ),
        # A signature covers the named properties, too.
        (
            {"properties": {"a": TEXT}, "additionalProperties": WHOLE},
            "{ a?: string; [key: string]: unknown }",
        ),
        ({"properties": {"a": TEXT}, "additionalProperties": False}, "{ a?: string }"),
        ({"type": "object", "properties": {}}, "{ [key: string]: never }"),
        (
            {"propertyNames": {"$ref": "#/$defs/Color"}, "additionalProperties": WHOLE},
            "{ [K in Color]?: number }",
        ),
        (
            {"propertyNames": {"const": "a"}, "additionalProperties": WHOLE},
            '{ [K in "a"]?: number }',
        ),
        (
            {"propertyNames": {"$ref": "#/$defs/Level"}, "additionalProperties": WHOLE},
            "{ [key: string]: number }",
        ),
        (
            {"propertyNames": {"pattern": "^x"}, "additionalProperties": WHOLE},
            "{ [key: string]: number }",
        ),
    ],
)
def test_objects_and_maps(schema: Any, expected: str) -> None:
    assert str(TYPES.type_of(schema)) == expected


def test_members_of_a_discriminated_union_have_their_discriminator() -> None:
    schema = {"oneOf": [CAT, DOG], "discriminator": {"propertyName": "kind"}}

    assert str(TYPES.type_of(schema)) == '(Cat & { kind: "cat" }) | Dog'
