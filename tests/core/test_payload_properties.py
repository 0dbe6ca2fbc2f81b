import json
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from forge.core.errors import InvalidPayload
from forge.core.payload import decode, encode

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")) | st.sampled_from(
    ["\\u0000", "\\\\u0000", "NaN", "[{", '"', "\u2028", "\x7f", "\U0001f600"]
)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=-(10**4300) + 1, max_value=10**4300 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT
)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(TEXT, inner, max_size=5),
    max_leaves=30,
)
FORBIDDEN = st.sampled_from(
    [
        float("nan"),
        float("inf"),
        -float("inf"),
        "\0",
        "\\u0000\0",
        "x\ud800",
        "\udc00",
        b"",
        b"bytes",
        {1, 2},
        frozenset(),
        object(),
        1j,
        {1: 2},
        {None: 1},
        {True: 1},
    ]
) | st.just(4300).map(lambda digits: 10**digits)  # too long for a repr
ANYTHING = st.recursive(
    SCALARS
    | FORBIDDEN
    | st.floats()
    | st.text(st.characters())
    | st.binary()
    | st.datetimes()
    | st.uuids()
    | st.decimals(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(st.characters()) | st.integers(), inner, max_size=4)
    ),
    max_leaves=10,
)


@given(JSON)
@example({"a": "\\u0000", "b": [[] for _ in range(100)]})
def test_every_json_value_is_accepted_and_comes_back_the_same(value: Any) -> None:
    text = encode(value)

    assert decode(text) == value
    assert decode(text.encode()) == value
    assert json.loads(text) == value


@given(ANYTHING)
def test_accepted_values_are_json_that_both_decoders_agree_on(value: Any) -> None:
    try:
        text = encode(value)
    except InvalidPayload:
        assume(False)

    stored = decode(text)

    assert json.loads(text, parse_constant=pytest.fail) == stored
    assert encode(stored) == text
    assert not holds_a_nul(stored)


@given(JSON, FORBIDDEN, st.data())
def test_a_forbidden_value_is_refused_wherever_it_is_put(
    value: Any, forbidden: Any, data: st.DataObject
) -> None:
    spoiled, path = put(forbidden, value, data)

    with pytest.raises(InvalidPayload) as refused:
        encode(spoiled)

    assert refused.value.path == path
    assert f"input: {path} " in str(refused.value)


@given(JSON, st.sampled_from(["a\0", "\0", "\ud800"]), st.data())
def test_a_forbidden_key_is_refused_wherever_it_is_put(
    value: Any, key: str, data: st.DataObject
) -> None:
    spoiled, path = put({"fine": 1, key: 2}, value, data)

    with pytest.raises(InvalidPayload) as refused:
        encode(spoiled)

    assert refused.value.path == f"{path}[{json.dumps(key)}]"


def put(thing: Any, value: Any, data: st.DataObject) -> tuple[Any, str]:
    """Put a thing at a random place in a value, and say where that is."""
    if not isinstance(value, dict | list) or data.draw(st.booleans()):
        return thing, "$"
    if isinstance(value, list):
        index = data.draw(st.integers(0, len(value)))
        inner, path = put(thing, value[index] if index < len(value) else None, data)
        return [*value[:index], inner, *value[index + 1 :]], f"$[{index}]{path[1:]}"
    key = data.draw(st.sampled_from(["new", "two words", "1st"]))
    inner, path = put(thing, value.get(key), data)
    step = ".new" if key == "new" else f'["{key}"]'
    return {**value, key: inner}, f"${step}{path[1:]}"


def holds_a_nul(value: Any) -> bool:
    if isinstance(value, dict):
        return any("\0" in key or holds_a_nul(child) for key, child in value.items())
    if isinstance(value, list):
        return any(map(holds_a_nul, value))
    return isinstance(value, str) and "\0" in value
