"""Names, literals and comments as TypeScript text."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forge.core.typescript.text import (
    doc_comment,
    doc_lines,
    json_literal_type,
    pascal_case,
    property_name,
    string_literal,
    type_name,
)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("export_users", "ExportUsers"),
        ("billing.export-users", "BillingExportUsers"),
        ("exportUsers", "ExportUsers"),
        ("class", "Class"),
        ("3d render", "3dRender"),
        ("__proto__", "Proto"),
        ("größe", "Größe"),
        ("日本語", "日本語"),
        ("a🔨b", "AB"),
        ("---", ""),
    ],
)
def test_names_become_pascal_case(name: str, expected: str) -> None:
    assert pascal_case(name) == expected


def test_composed_and_decomposed_letters_become_one_name() -> None:
    assert pascal_case("cafe\u0301") == pascal_case("caf\u00e9")


@given(st.text())
def test_every_name_becomes_an_identifier_or_nothing(name: str) -> None:
    words = pascal_case(name)

    assert not words or type_name(words).isidentifier()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("rows", "rows"),
        ("class", "class"),
        ("$ref", "$ref"),
        ("first-name", '"first-name"'),
        ("1st", '"1st"'),
        ("größe", '"größe"'),
        ('a"b\n', r'"a\"b\n"'),
        ("", '""'),
    ],
)
def test_property_names_are_quoted_where_needed(name: str, expected: str) -> None:
    assert property_name(name) == expected


def test_invisible_characters_in_literals_are_escaped() -> None:
    assert string_literal("a\x1b\x7f\u2028\u202e\ud800") == r'"a\u001b\u007f\u2028\u202e\ud800"'


@given(st.text())
def test_a_string_literal_has_the_same_value_and_can_be_written(text: str) -> None:
    literal = string_literal(text)

    assert json.loads(literal) == text
    assert literal.encode()


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("csv", '"csv"'),
        (-1, "-1"),
        (1.5, "1.5"),
        (True, "true"),
        (None, "null"),
        ([1, "a"], '[1, "a"]'),
        ({"a-b": {"c": []}}, '{ "a-b": { c: [] } }'),
        (float("inf"), "number"),
        (float("nan"), "number"),
    ],
)
def test_json_values_become_literal_types(value: object, expected: str) -> None:
    assert json_literal_type(value) == expected


def test_a_short_comment_takes_one_line() -> None:
    assert doc_comment(doc_lines("Export users.")) == "/** Export users. */\n"
    assert doc_comment(doc_lines(None)) == ""
    assert doc_comment(doc_lines("  \n ")) == ""


def test_a_long_comment_keeps_its_lines_and_its_tags() -> None:
    lines = doc_lines("Export users.\n\n  Indented.", {"default": "1", "deprecated": ""})

    assert doc_comment(lines, "  ").splitlines() == [
        "  /**",
        "   * Export users.",
        "   *",
        "   *   Indented.",
        "   * @default 1",
        "   * @deprecated",
        "   */",
    ]


@given(st.text())
def test_no_text_ends_its_comment(text: str) -> None:
    comment = doc_comment(doc_lines(text))

    assert comment == "" or comment.index("*/") == len(comment) - len("*/\n")
