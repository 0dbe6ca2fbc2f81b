"""SQL rejects the payloads that Python rejects: the same names, shapes and paths."""

import itertools
import json
import string
from collections.abc import Iterator, Sequence
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from forge.core.sensitive.content import (
    BODIES,
    DOCUMENTS,
    FILES,
    KINDS,
    MAILS,
    MARKUPS,
    WHOLES,
    EnclosingMeaning,
    place_of,
)
from forge.core.sensitive.findings import is_secret, sensitive_faults
from forge.core.sensitive.names import FIGURES, REFERENCES, SECRET_WORDS, SECRETS
from forge.store.embedded import Cluster
from tests.core.sensitive.test_findings import (
    _buried,
    _spelled,
    clean_leaves,
    clean_names,
    clean_payloads,
    paths,
    secret_names,
    shapes,
)

Psql = psycopg.Connection[Any]
texts = st.text(string.printable, max_size=80)
things = shapes | texts | clean_leaves | st.integers(1, 10**19) | st.sampled_from(["", [], {}])
pairs = st.builds(
    lambda place, name, value: {place: name, "value": value},
    st.sampled_from(["name", "key", "header"]),
    clean_names | secret_names,
    things,
)
CONTENT_WORDS = [*BODIES, *KINDS, *DOCUMENTS, *MAILS, *FILES, *MARKUPS, *WHOLES, "subject", "id"]
content_names = st.builds(
    _spelled,
    st.lists(st.sampled_from(CONTENT_WORDS), min_size=1, max_size=3),
    st.sampled_from(["snake", "camel", "pascal", "joined"]),
)
# What letters, headers, references and documents are made of.
PIECES = [
    "Dear Ann,",
    "Hello",
    "From: a@b.c",
    "To: d@e.f",
    "Subject: x",
    "DOC-17",
    "a.pdf",
    "No. 5",
]
PIECES += [
    "\n",
    "\n\n",
    " ",
    "<p>",
    "</p>",
    "text/html",
    "; charset=utf-8",
    "https://x/y",
    "JVBERi0",
]
PIECES += ["Ann <a@b.c>", "word " * 30, "契約書", "\r\n", "\t", "x" * 130, "!", "RnJvbTog"]
contents = st.lists(st.sampled_from(PIECES), max_size=6).map("".join)
content = st.recursive(
    contents | things,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(content_names, inner, max_size=3),
    max_leaves=6,
)
payloads = st.builds(
    _buried,
    clean_payloads,
    paths,
    clean_names | secret_names | content_names | texts,
    things | pairs | content,
)


@pytest.fixture(scope="module")
def psql(server: Cluster, template: str) -> Iterator[Psql]:
    """A database for all the examples: nothing is written there."""
    name = f"sensitive_{uuid4().hex[:12]}"
    with psycopg.connect(server.url("postgres"), autocommit=True) as admin:
        admin.execute(f"create database {name} template {template}".encode())
        with psycopg.connect(server.url(name), autocommit=True) as connection:
            yield connection
        admin.execute(f"drop database {name} with (force)".encode())


def found_by_sql(psql: Psql, payload: Any, allowed: list[str]) -> str | None:
    """Return what SQL has against a payload."""
    try:
        psql.execute(
            "select forge_check_sensitive(%s::text::jsonb, %s)", (json.dumps(payload), allowed)
        )
    except psycopg.errors.InvalidParameterValue as error:
        return error.diag.message_primary
    return None


def found_by_python(payload: Any, allowed: list[str]) -> set[str]:
    faults = sensitive_faults(payload, allowed)
    return {f"{fault.path} {fault.message.partition(';')[0]}" for fault in faults}


def agree(psql: Psql, payload: Any, allowed: list[str]) -> None:
    found = found_by_sql(psql, payload, allowed)
    known = found_by_python(payload, allowed)

    assert found in known if known else found is None, (payload, allowed, known)


@given(payloads)
@example({"notes": [["-----BEGIN PRIVATE KEY-----"]]})
@example({"user_ssn": "x", "token_value": "x"})
@example({"headers": [{"name": "Authorization", "value": "x"}]})
@example({"card": 4111111111111111, "card_id": 4111111111111111})
@example({"4111 1111 1111 1111": "x"})
@example({"auth": "Basic dXNlcjpwYXNz", "plan": "basic monthly"})
@example({"page": "x" * 513, "letter": "word " * 201})
@example(
    {"body": [{"text": "Hi", "id": "a b", "other": "a b"}, "Hi"], "name": "body", "value": "Hi"}
)
@example({"document": {"data": "x", "base64": "y", "mime": "text/html"}, "file_base64": "z"})
@example({"subject": "a b", "text": "x", "message": "y", "html": {"deep": {"plain": "z"}}})
def test_sql_refuses_what_python_refuses_and_nothing_else(psql: Psql, payload: Any) -> None:
    agree(psql, payload, [])


@given(payloads, st.sampled_from(["name", "path", "any place"]))
@example({"a": {"token": "x"}, "token": "y"}, "path")
@example({"a": [{"token": "x"}, {"token": "y"}]}, "path")
@example({"a": [{"token": "x"}, {"token": "y"}]}, "any place")
def test_sql_accepts_allowed_values_only(psql: Psql, payload: Any, how: str) -> None:
    for fault in sensitive_faults(payload)[:1]:
        assume("…" not in fault.path)  # cut for those who read it
        name = fault.path.rpartition(".")[2].strip('[]"') or "x"
        place = fault.path.replace("[0]", "[*]") if how == "any place" else fault.path

        agree(psql, payload, [name if how == "name" else place])


SPELLINGS = ("snake", "kebab", "camel", "pascal", "upper", "dotted", "spaced", "joined")
# Of the names every third is tried with a text and a number; what else a value may be hardly
# depends on the name.
VALUES = [("x", 3), (5, 3), ("", 25), (True, 25), (None, 25), ([], 25), ({"a": 1}, 25), (" ", 25)]


def test_names_mean_the_same_in_every_spelling_and_company(psql: Psql) -> None:
    words = [*SECRETS, *SECRET_WORDS, *BODIES, "secretary", "spin", "order"]
    names = _company(("", "user", *FIGURES), words, ("", *KINDS, *REFERENCES, "value"))

    for value, step in VALUES:
        found = psql.execute(
            "select name, "
            "forge_may_be_secret(name) and forge_is_secret(name, %(value)s::text::jsonb) "
            "from unnest(%(names)s::text[]) as name",
            {"value": json.dumps(value), "names": names[::step]},
        ).fetchall()
        wrong = [name for name, secret in found if secret != is_secret(name, value)]
        assert (value, wrong[:10]) == (value, [])


@pytest.mark.parametrize("beside_subject", [False, True])
@pytest.mark.parametrize("inside", EnclosingMeaning)
def test_names_of_content_mean_the_same_in_every_place(
    psql: Psql, inside: EnclosingMeaning, beside_subject: bool
) -> None:
    words = [*BODIES, *DOCUMENTS, *MAILS, *FILES, *MARKUPS, *KINDS]
    names = _company(("", "user", *WHOLES), words, ("", *KINDS, "id", "name", "weight"))

    found = psql.execute(
        "select name, case when %(inside)s > 0 or forge_may_be_secret(name) "
        "then forge_content_place(name, %(inside)s, %(beside)s) else 0 end "
        "from unnest(%(names)s::text[]) as name",
        {"inside": int(inside), "beside": beside_subject, "names": names},
    ).fetchall()

    wrong = [
        (name, place, expected)
        for name, place in found
        if place
        != (expected := place_of(name, inside, beside_subject)).level + 10 * expected.inside
    ]
    assert wrong[:10] == []


def _company(before: Sequence[str], words: Sequence[str], after: Sequence[str]) -> list[str]:
    return sorted(
        {
            _spelled([part for part in parts if part], how)
            for parts in itertools.product(before, words, after)
            for how in SPELLINGS
        }
    )
