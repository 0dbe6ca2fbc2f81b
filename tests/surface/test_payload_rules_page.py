"""The page on payload rules lists what the code looks for."""

import re

from forge.core.rules import CATEGORIES, RECOMMENDED_SIZE, REFERENCES
from forge.core.sensitive_content import (
    BESIDE_SUBJECT,
    BODIES,
    DOCUMENTS,
    FILES,
    KINDS,
    LONGEST_MESSAGE,
    LONGEST_REFERENCE,
    MAILS,
    MARKUPS,
    WHOLES,
)
from forge.core.sensitive_names import SECRET_WORDS, SECRETS
from forge.core.sensitive_shapes import LONGEST_BASE64, LONGEST_TEXT
from tests.surface.test_reference import REFERENCE, table


def _names(cell: str) -> list[str]:
    return re.findall(r"`(\w+)`", cell)


def test_the_categories_stand_there_with_their_meaning() -> None:
    told = {row[0].strip("`"): row[1] for row in table("payload-rules.md", "category")}

    assert told == CATEGORIES


def test_the_references_of_each_category_stand_there() -> None:
    page = (REFERENCE / "payload-rules.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| (`\w+_id`.*|the tenant itself) \|$", page, re.M)

    assert {category: tuple(_names(cell)) for category, cell in rows} == REFERENCES


def test_the_names_of_sensitive_content_stand_there() -> None:
    anywhere, word, *_ = (row[1] for row in table("payload-rules.md", "found by"))

    assert _names(anywhere) == list(SECRETS)
    assert _names(word) == list(SECRET_WORDS)


def test_the_names_of_content_stand_there() -> None:
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


def test_the_limits_stand_there() -> None:
    *_, document = (row[1] for row in table("payload-rules.md", "found by"))

    assert f"more than {LONGEST_BASE64} characters of base64" in document
    assert f"more than {LONGEST_TEXT:,} characters" in document
    page = (REFERENCE / "payload-rules.md").read_text()
    assert f"more than {LONGEST_REFERENCE} characters" in page
    assert f"more than {LONGEST_MESSAGE} characters" in page
    assert RECOMMENDED_SIZE == 10 * 1024
