"""Sensitive values are found at any depth, and clean payloads are accepted."""

import base64
import json
import string
from typing import Any

from hypothesis import assume, example, given
from hypothesis import strategies as st

from forge import PayloadValidator
from forge.core.sensitive.content import BODIES
from forge.core.sensitive.findings import sensitive_faults
from forge.core.sensitive.names import REFERENCES, SECRET_WORDS, SECRETS
from forge.core.sensitive.shapes import luhn

# Words unrelated to secrets, from which clean names are built.
CLEAN_WORDS = [
    "user",
    "order",
    "invoice",
    "author",
    "page",
    "stage",
    "spin",
    "passenger",
    "secretary",
]
clean_names = st.lists(st.sampled_from(CLEAN_WORDS), min_size=1, max_size=3).map("_".join)
clean_texts = st.text(string.ascii_letters + " _", max_size=40).filter(
    lambda text: "bearer" not in text.lower() and "basic" not in text.lower()
)
clean_leaves = (
    st.none()
    | st.booleans()
    | st.integers(-(2**31), 2**31)
    | st.floats(allow_nan=False, allow_infinity=False)
    | clean_texts
    | st.uuids().map(str)
    | st.datetimes().map(lambda at: at.isoformat())
)
clean_payloads = st.dictionaries(
    clean_names,
    st.recursive(
        clean_leaves,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(clean_names, inner, max_size=3),
        max_leaves=8,
    ),
    max_size=5,
)


def _spelled(words: list[str], how: str) -> str:
    match how:
        case "camel":
            return words[0] + "".join(word.title() for word in words[1:])
        case "pascal":
            return "".join(word.title() for word in words)
        case "upper":
            return "_".join(words).upper()
        case "joined":
            return "".join(words)
    return {"snake": "_", "kebab": "-", "dotted": ".", "spaced": " "}[how].join(words)


NAMED = """password passwd client_secret api_key access_token pwd authorization ssn card_number
credit_card private_key refresh_token credentials cvv session_cookie passphrase"""
secret_words = st.sampled_from(NAMED.split()).map(lambda name: name.split("_"))
spellings = st.sampled_from(["snake", "kebab", "camel", "pascal", "upper", "dotted", "spaced"])
secret_names = st.builds(
    lambda before, words, how: _spelled([*before, *words], how),
    st.lists(st.sampled_from(["user", "db", "old", "x"]), max_size=2),
    secret_words,
    spellings,
)
token_text = st.text(string.ascii_letters + string.digits + "-_", min_size=12, max_size=60)


def _base64(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


jwts = st.builds(
    lambda subject, signature: ".".join(
        [_base64(json.dumps({"alg": "HS256"})), _base64(json.dumps({"sub": subject})), signature]
    ),
    st.text(string.ascii_letters, min_size=1, max_size=10),
    token_text,
)
keys = st.sampled_from(["RSA ", "EC ", "OPENSSH ", "ENCRYPTED ", ""]).map(
    lambda kind: f"-----BEGIN {kind}PRIVATE KEY-----\nMIIEvQ"
)


@st.composite
def cards(draw: st.DrawFn) -> str:
    """A card number of a known network, written as people write them."""
    prefix, length = draw(
        st.sampled_from(
            [("4", 16), ("51", 16), ("2221", 16), ("34", 15), ("6011", 16), ("3530", 16)]
        )
    )
    rest = draw(st.text(string.digits, min_size=length - 1 - len(prefix)))
    body = (prefix + rest)[: length - 1]
    digits = next(body + end for end in string.digits if luhn(body + end))
    separator = draw(st.sampled_from(["", " ", "-", "."]))
    return separator.join(digits[i : i + 4] for i in range(0, len(digits), 4))


headers = st.builds(
    lambda scheme, token: f"{scheme} {token}",
    st.sampled_from(["Bearer", "bearer", "BEARER"]),
    st.text(string.ascii_letters + string.digits, min_size=20, max_size=60),
) | st.builds(
    lambda user, word: f"Basic {base64.b64encode(f'{user}:{word}'.encode()).decode()}",
    st.text(string.ascii_letters, min_size=3, max_size=8),
    st.text(string.ascii_letters, min_size=3, max_size=8),
)
documents = st.sampled_from(
    [
        "x" * 1001,
        "word " * 300,
        base64.b64encode(bytes(range(256)) * 3).decode(),
        "data:application/pdf;base64,JVBERi0xLjQK",
        "<!DOCTYPE html><p>Dear Ann</p>",
        "MIME-Version: 1.0\nSubject: hello\n\nDear Ann",
    ]
)
shapes = jwts | keys | cards() | headers | documents


def _buried(payload: dict[str, Any], path: list[str | int], name: str, value: Any) -> Any:
    """Put a value deep into a payload."""
    inner: Any = {name: value}
    for step in reversed(path):
        inner = [inner] if isinstance(step, int) else {step: inner}
    return payload | {"where": inner}


paths = st.lists(clean_names | st.integers(0, 3), max_size=4)


@given(clean_payloads)
@example({"token_count": 3, "max_tokens": 100, "secret_id": "s", "api_key_id": 4})
@example({"body_id": 3, "content_type": "text/html", "content_length": 99999})
@example({"message_id": 4111111111111111, "at": 1735557600123})
@example({"plan": "basic monthly", "note": "a bearer of news"})
def test_nothing_clean_is_refused(payload: dict[str, Any]) -> None:
    assert sensitive_faults(payload) == []


@given(clean_payloads, paths, secret_names, st.text(min_size=1, max_size=20) | st.integers(1))
def test_nothing_with_the_name_of_a_secret_gets_through(
    payload: dict[str, Any], path: list[str | int], name: str, value: Any
) -> None:
    found = sensitive_faults(_buried(payload, path, name, value))

    assert len(found) == 1
    assert found[0].path.startswith("$.where")


@given(clean_payloads, paths, clean_names, shapes)
def test_nothing_with_the_looks_of_a_secret_gets_through(
    payload: dict[str, Any], path: list[str | int], name: str, value: str
) -> None:
    found = sensitive_faults(_buried(payload, path, name, value))

    assert len(found) == 1
    assert found[0].path.startswith("$.where")


@given(clean_payloads, paths, clean_names | secret_names, shapes)
def test_faults_never_quote_the_value(
    payload: dict[str, Any], path: list[str | int], name: str, value: str
) -> None:
    buried = _buried(payload, path, name, value)

    for fault in (*sensitive_faults(buried), *sensitive_faults({"where": {value: name}})):
        assert value not in fault.path
        assert value not in fault.message


@given(st.sampled_from([*SECRETS, *SECRET_WORDS, *BODIES]), spellings)
def test_every_documented_name_is_found(name: str, how: str) -> None:
    assert sensitive_faults({_spelled(["my", name], how): "some text"})


@given(st.sampled_from([*SECRETS, *SECRET_WORDS]), st.sampled_from(REFERENCES))
def test_references_to_secrets_are_clean(name: str, reference: str) -> None:
    assert sensitive_faults({f"{name}_{reference}": "k17"}) == []


@given(clean_payloads, secret_names, spellings)
def test_a_name_is_allowed_in_any_spelling(payload: dict[str, Any], name: str, how: str) -> None:
    assume(name not in payload)

    assert sensitive_faults({"deep": [payload | {name: "x"}]}, [name.swapcase()]) == []


@given(clean_payloads, st.uuids(), st.integers(-(2**63), 2**63 - 1))
def test_a_clean_payload_with_its_envelope_is_valid_in_every_category(
    payload: dict[str, Any], correlation: Any, tenant: int
) -> None:
    from forge.core.payload_rules import CATEGORIES

    made = PayloadValidator.create_payload(tenant, correlation, "a key", **payload, order_id=7)

    for category in CATEGORIES:
        assert PayloadValidator.validate_payload(made, category, list(payload)[:0]) == (True, [])
