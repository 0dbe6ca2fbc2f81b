"""The page on payload rules matches the code."""

import re

from forge.core.payload_rules import CATEGORIES, RECOMMENDED_SIZE, REFERENCES
from forge.core.sensitive.content import (
    BESIDE_SUBJECT,
    BODIES,
    DOCUMENTS,
    FILES,
    KINDS,
    MAILS,
    MARKUPS,
    MAX_MESSAGE_CHARS,
    MAX_REFERENCE_CHARS,
    WHOLES,
)
from forge.core.sensitive.names import SECRET_WORDS, SECRETS
from forge.core.sensitive.shapes import MAX_BASE64_CHARS, MAX_TEXT_CHARS
from tests.surface.test_reference import REFERENCE, table


def _names(cell: str) -> list[str]:
    return re.findall(r"`(\w+)`", cell)


def test_the_categories_are_documented_with_their_meaning() -> None:
    documented = {row[0].strip("`"): row[1] for row in table("payload-rules.md", "category")}

    assert documented == CATEGORIES


def test_the_references_of_each_category_are_documented() -> None:
    page = (REFERENCE / "payload-rules.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| (`\w+_id`.*|the tenant itself) \|$", page, re.M)

    assert {category: tuple(_names(cell)) for category, cell in rows} == REFERENCES


def test_the_field_names_of_sensitive_content_are_documented() -> None:
    anywhere, word, *_ = (row[1] for row in table("payload-rules.md", "found by"))

    assert _names(anywhere) == list(SECRETS)
    assert _names(word) == list(SECRET_WORDS)


def test_the_field_names_of_embedded_content_are_documented() -> None:
    rows = [_names(row[1]) for row in table("payload-rules.md", "a name")]

    assert rows == [
        list(BODIES),
        [*DOCUMENTS, *MAILS, *FILES],
        list(BESIDE_SUBJECT),
        [*DOCUMENTS, *MARKUPS],
        [*WHOLES, "text", *MAILS],
        [*MAILS, "text"],
        list(KINDS),
    ]


def test_the_limits_are_documented() -> None:
    *_, document = (row[1] for row in table("payload-rules.md", "found by"))

    assert f"more than {MAX_BASE64_CHARS} characters of base64" in document
    assert f"more than {MAX_TEXT_CHARS:,} characters" in document
    page = (REFERENCE / "payload-rules.md").read_text()
    assert f"more than {MAX_REFERENCE_CHARS} characters" in page
    assert f"more than {MAX_MESSAGE_CHARS} characters" in page
    assert RECOMMENDED_SIZE == 10 * 1024
