"""Secrets do not appear in the logs, whatever their source."""

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from forge.core.sensitive.redact import REDACTED, redact, redact_text, secrets_in
from forge.core.sensitive.shapes import is_plain
from tests.cli.command import Project
from tests.faults.kit.process import wait_until

APP = """
import forge

app = forge.Forge()


@app.job(max_attempts=1)
async def leak(ctx: forge.JobContext, input: dict) -> None:
    ctx.progress(10, f"logging in with {input['password']}")
    ways = {
        "value": f"login with {input['password']} failed",
        "named": "refused: api_key=CANARY-named-7788",
        "header": "401 for Authorization: Bearer CANARYheader1234567890abc",
        "url": "cannot connect to postgresql://forge:CANARY-url-1@db/forge",
        "repr": f"bad input {input!r}",
    }
    raise ValueError(ways[input["way"]])
"""
CANARY = "CANARY-input-4711"


@pytest.fixture
def project(database_url: str, tmp_path: Path) -> Project:
    (tmp_path / "leaky.py").write_text(APP)
    return Project(database_url, tmp_path)


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_a_secret_is_not_in_the_logs(project: Project, log_format: str) -> None:
    ways = ("value", "named", "header", "url", "repr")
    with project.worker("--log-format", log_format, app="leaky:app") as worker:
        for way in ways:
            value = json.dumps({"password": CANARY, "way": way})
            project.rows("select forge_dispatch('leak', %s)", value)
        wait_until(lambda: buried(worker.output()) == len(ways), 30, "all have failed")

        assert "CANARY" not in worker.output()
        assert REDACTED in worker.output()


def buried(output: str) -> int:
    """Count the lines that say what became of a job."""
    return sum("became a dead letter" in line for line in output.splitlines())


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (
            "login failed with password=hunter2 for bob",
            f"login failed with password={REDACTED} for bob",
        ),
        ("{'api_key': 'two words', 'n': 1}", f"{{'api_key': {REDACTED}, 'n': 1}}"),
        ('{"token": "abc"}', f'{{"token": {REDACTED}}}'),
        ("Authorization: Bearer abcdef1234567890abcd", f"Authorization: Bearer {REDACTED}"),
        ("card 4111111111111111 declined", f"card {REDACTED} declined"),
        ("key AKIAABCDEFGHIJKLMNOP is old", f"key {REDACTED} is old"),
        ("refused: token=abc123", f"refused: token={REDACTED}"),
        ("refused: why: token: abc123", f"refused: why: token: {REDACTED}"),
        ("division by zero", "division by zero"),
        ("token count: 5", "token count: 5"),
        ("KeyError: 'secret'", "KeyError: 'secret'"),
    ],
)
def test_secrets_in_a_text_are_redacted_and_the_rest_stays(said: str, shown: str) -> None:
    assert redact_text(said) == shown


def test_values_are_redacted_by_name_and_by_shape_at_any_depth() -> None:
    value = {
        "user": {"name": "Ann", "apiKey": "k-1", "has_password": True, "max_tokens": 7},
        "headers": [{"name": "Authorization", "value": "x"}, {"name": "Accept", "value": "json"}],
        "card": 4111111111111111,
        "order_id": 4111111111111111,
        "empty": {"password": ""},
    }

    assert redact(value) == {
        "user": {"name": "Ann", "apiKey": REDACTED, "has_password": True, "max_tokens": 7},
        "headers": [
            {"name": "Authorization", "value": REDACTED},
            {"name": "Accept", "value": "json"},
        ],
        "card": REDACTED,
        "order_id": 4111111111111111,
        "empty": {"password": ""},
    }


def test_a_secret_far_into_a_long_text_is_found() -> None:
    text = "word " * 2000 + "password: swordfish " + "word " * 2000

    shown = redact_text(text)

    assert "swordfish" not in shown
    assert len(shown) > 15_000


def test_a_secret_in_a_document_is_found() -> None:
    page = "<html><body>401: Bearer abcdef1234567890abcd was refused</body></html>"

    assert "abcdef" not in redact_text(page)


def test_a_secret_that_was_cut_where_the_text_ends_is_found() -> None:
    known = secrets_in({"password": "swordfish-and-more"})

    assert redact_text("x" * 490 + " swordfish", known).endswith(f"x {REDACTED}")


@pytest.mark.parametrize("secret", ['qu"ote\\d', "zwei\nZeilen", "schlüssel/zwei"])
def test_a_secret_is_found_however_it_is_quoted(secret: str) -> None:
    known = secrets_in({"password": secret})
    said = f"{secret} {secret!r} {json.dumps(secret)} {quote(secret, safe='')}"

    assert redact_text(said, known).count(REDACTED) == 4


def test_a_known_secret_after_its_name_is_taken_out_once() -> None:
    assert redact_text("token=swordfish, again", {"swordfish"}) == f"token={REDACTED}, again"


def test_what_a_type_allows_is_shown() -> None:
    value = {"page_token": "a-12345", "items": [{"token": "b-12345"}], "token": "c-12345"}
    allowed = ["pageToken", "$.items[*].token"]

    assert redact(value, (), allowed) == value | {"token": REDACTED}
    assert secrets_in(value, allowed) == {"c-12345"}


WORDS = st.sampled_from(
    [
        *("token", "Api_Key", "pass-word", "x", "=", ": ", '"', " ", "@", "://", "1-", "=>", "é"),
        *("Bearer", "basic", "dXNlcjpwYXNz", "abc123", "postgres", "2026-01-01T12:00:00", "\n"),
        *("eyJhbGciOiJI.eyJz.x", "4111111111111111", "123-45-6789", "AKIAABCDEFGHIJKLMNOP", "."),
    ]
)


@given(st.lists(WORDS | st.text(max_size=5), max_size=8).map("".join))
def test_a_text_that_is_found_plain_at_a_glance_is_plain(text: str) -> None:
    assume(is_plain(text))
    with pytest.MonkeyPatch.context() as patched:
        # Without the glance every text is looked at closely: both must say the same.
        patched.setattr("forge.core.sensitive.redact.is_plain", lambda text: False)

        assert redact_text(text) == text


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=30),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4)
    ),
    max_leaves=20,
)


# Of digits alone a number that has nothing to do with it may happen to hold it.
SECRETS = st.text("abcdefghij0123456789", min_size=8, max_size=40).filter(lambda s: not s.isdigit())


@given(VALUES, SECRETS)
def test_a_secret_of_the_input_is_in_no_log_or_error(value: Any, secret: str) -> None:
    payload = {"password": secret, "value": value}

    known = secrets_in(payload)

    assert secret not in redact_text(f"failed on {payload!r} with {secret}", known)
    assert secret not in json.dumps(redact(payload, known))


@given(VALUES)
def test_whatever_is_redacted_is_still_json(value: Any) -> None:
    assert json.loads(json.dumps(redact(value))) == redact(value)
