import json
import pickle
from collections import Counter, OrderedDict, deque, namedtuple
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any
from uuid import UUID

import pytest
from pydantic import BaseModel, Field, SecretStr

from forge.core.errors import ForgeError, InvalidPayload
from forge.core.payload import MAX_DEPTH, MAX_DIGITS, decode, encode

NAN = float("nan")


class Colour(Enum):
    RED = "red"


class Plan(StrEnum):
    FREE = "free"


class Level(IntEnum):
    HIGH = 3


class Order(BaseModel):
    number: int
    at: datetime
    tags: set[str] = Field(default_factory=set)
    weight: float = 1.0


class Chain(BaseModel):
    inner: "Chain | None" = None


@dataclass
class Point:
    x: float
    y: Any = None
    labels: list[str] = field(default_factory=list)


Pair = namedtuple("Pair", "left right")


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth - 1):
        value = [value]
    return value


def refusal(value: object, **options: Any) -> InvalidPayload:
    with pytest.raises(InvalidPayload) as refused:
        encode(value, **options)
    return refused.value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        ({}, "{}"),
        ({"a": [1, 2.5, True, None, "é"]}, '{"a":[1,2.5,true,null,"é"]}'),
        (2**64, "18446744073709551616"),
        (-(2**200), str(-(2**200))),
        ({"a": "\\u0000"}, '{"a":"\\\\u0000"}'),
        ({"NaN": "Infinity"}, '{"NaN":"Infinity"}'),
        ("[" * 500, '"' + "[" * 500 + '"'),
        ("7" * 5000, '"' + "7" * 5000 + '"'),
        ((1, (2,)), "[1,[2]]"),
        (Pair(1, [2]), "[1,[2]]"),
        (OrderedDict(b=1, a=2), '{"b":1,"a":2}'),
        (Counter("aab"), '{"a":2,"b":1}'),
    ],
)
def test_a_json_value_is_written_compactly(value: object, text: str) -> None:
    assert encode(value) == text


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        (datetime(2024, 2, 29, 12, 30, tzinfo=UTC), "2024-02-29T12:30:00Z"),
        (date(2024, 2, 29), "2024-02-29"),
        (time(1, 2, 3), "01:02:03"),
        (timedelta(days=1), "P1D"),
        (UUID(int=7), "00000000-0000-0000-0000-000000000007"),
        (Decimal("1.10"), "1.10"),
        (Path("a"), "a"),
        (Colour.RED, "red"),
        (Plan.FREE, "free"),
        (Level.HIGH, 3),
        (Point(1.5, (1, Colour.RED)), {"x": 1.5, "y": [1, "red"], "labels": []}),
        (
            Order(number=1, at=datetime(2024, 1, 1, tzinfo=UTC), tags={"new"}),
            {"number": 1, "at": "2024-01-01T00:00:00Z", "tags": ["new"], "weight": 1.0},
        ),
    ],
)
def test_a_richer_value_is_stored_as_pydantic_would_at_any_depth(
    value: object, stored: object
) -> None:
    assert decode(encode(value)) == stored
    assert decode(encode({"a": [value]})) == {"a": [stored]}


def test_text_keys_may_come_from_an_enum() -> None:
    assert encode({Plan.FREE: 1}) == '{"free":1}'
    assert encode({Plan.FREE: Colour.RED}) == '{"free":"red"}'


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (NAN, "NaN or Infinity"),
        (float("inf"), "NaN or Infinity"),
        (float("-inf"), "NaN or Infinity"),
        (Decimal("NaN"), "NaN or Infinity"),
        (Decimal("Infinity"), "NaN or Infinity"),
        ("a\0b", "NUL character"),
        ("\\u0000\0", "NUL character"),
        ("\ud800", "lone surrogate"),
        ("\ud83d\ude00", "lone surrogate"),
        pytest.param(10**MAX_DIGITS, "more than 4,300 digits", id="one digit more"),
        pytest.param(-(10**200_000), "more than 4,300 digits", id="absurd"),
        (b"x", "is bytes; pass base64"),
        (bytearray(b"x"), "is bytes; pass base64"),
        (memoryview(b"x"), "is bytes; pass base64"),
        ({1}, "is a set, which JSON does not have; pass a list"),
        (frozenset(), "is a set"),
        (deque([1]), "of type collections.deque"),
        (range(3), "of type range"),
        (MappingProxyType({}), "of type mappingproxy"),
        (object(), "of type object"),
        (ValueError("x"), "of type ValueError"),
        (1j, "of type complex"),
        (int, "the class int"),
        (Order, "the class "),
        (Point, "the class "),
        (len, "of type builtin_function_or_method"),
        (SecretStr("hush"), "is a secret"),
    ],
)
def test_what_json_or_postgresql_cannot_hold_is_refused_where_it_stands(
    bad: object, message: str
) -> None:
    error = refusal({"ok": 1, "a": [0, 1, 2, {"b": bad}]}, what="output")

    assert error.path == "$.a[3].b"
    assert str(error).startswith("output: $.a[3].b ")
    assert message in str(error)
    assert "; " in str(error), "the message ends with what to do"
    assert refusal(bad).path == "$"


@pytest.mark.parametrize("key", [1, 1.5, True, None, (1, 2), UUID(int=1), b"a", Level.HIGH])
def test_keys_that_are_not_text_are_refused(key: object) -> None:
    error = refusal({"a": [{key: 1}]})

    assert error.path == "$.a[0]"
    assert "JSON keys are text; pass str(key)" in str(error)


@pytest.mark.parametrize(
    ("key", "path"),
    [
        ("a\0", '$.in["a\\u0000"]'),
        ("\udfff", '$.in["\\udfff"]'),
    ],
)
def test_a_bad_key_is_shown_escaped(key: str, path: str) -> None:
    error = refusal({"in": {key: 1}})

    assert error.path == path
    assert str(error).isprintable()


def test_keys_that_are_not_names_are_quoted_in_the_path_and_long_ones_cut() -> None:
    assert refusal({"a b": NAN}).path == '$["a b"]'
    assert refusal({"": NAN}).path == '$[""]'
    assert len(refusal({"k" * 10_000: NAN}).path) < 100


def test_a_value_may_be_nested_to_the_limit_and_no_deeper() -> None:
    assert json.loads(encode(nested(MAX_DEPTH))) == nested(MAX_DEPTH)
    assert encode([nested(MAX_DEPTH - 1)] * 100)

    error = refusal(nested(MAX_DEPTH + 1))

    assert error.path == "$" + "[0]" * MAX_DEPTH
    assert "deeper than 64 levels; flatten it" in str(error)
    assert "deeper than 64" in str(refusal([nested(MAX_DEPTH)] * 100))
    assert "deeper than 64" in str(refusal({"a": [(nested(MAX_DEPTH - 1),)]}))


@pytest.mark.parametrize("depth", [200, 254, 256, 1_000, 10_000])
def test_absurd_depth_is_refused_without_a_recursion_error(depth: int) -> None:
    assert "deeper than 64" in str(refusal(nested(depth)))


def test_a_value_that_contains_itself_is_refused() -> None:
    loop: dict[str, Any] = {"a": [1]}
    loop["a"].append(loop)
    knot = Point(1.0)
    knot.y = knot
    ring = Chain()
    ring.inner = ring

    assert refusal(loop).path == "$.a[1]"
    assert "contains itself" in str(refusal(loop))
    assert refusal(knot).path.startswith("$.y.y")
    assert refusal({"chain": ring}).path == "$.chain"
    assert "Circular reference" in str(refusal(ring))


def test_the_same_value_twice_is_not_a_circle() -> None:
    shared = {"x": (1,)}

    assert encode({"a": shared, "b": [shared]}) == '{"a":{"x":[1]},"b":[{"x":[1]}]}'


def test_a_generator_is_refused_and_not_run() -> None:
    ran = []

    def rows() -> Iterator[int]:
        ran.append(True)
        yield 1

    error = refusal(rows())

    assert "of type generator" in str(error)
    assert ran == []
    assert refusal({"rows": rows()}).path == "$.rows"


def test_a_fault_inside_a_model_or_a_dataclass_is_found() -> None:
    order = Order(number=1, at=datetime(2024, 1, 1), weight=NAN)

    assert refusal(order).path == "$.weight"
    assert refusal([order]).path == "$[0].weight"
    assert refusal({"p": Point(1.0, {"deep": {2}})}).path == "$.p.y.deep"


def test_the_size_limit_counts_bytes_and_the_message_states_both_sizes() -> None:
    assert encode("x" * 98, limit=100)

    error = refusal("x" * 99, limit=100)

    assert "is 101 bytes of JSON, the limit is 100 bytes" in str(error)
    assert "is 102 bytes" in str(refusal("é" * 50, limit=100))
    assert "is 300,002 bytes of JSON, the limit is 262,144 bytes" in str(refusal("x" * 300_000))


def test_the_error_is_ours_and_travels_between_processes_with_its_path() -> None:
    error = pickle.loads(pickle.dumps(refusal({"a": NAN})))

    assert isinstance(error, InvalidPayload)
    assert error.path == "$.a"
    assert issubclass(InvalidPayload, ForgeError)
    assert issubclass(InvalidPayload, ValueError)


def test_text_and_bytes_are_decoded() -> None:
    assert decode('{"a": [1, 2.5, "é", null]}') == {"a": [1, 2.5, "é", None]}
    assert decode('"é"'.encode()) == "é"


@pytest.mark.parametrize("text", ["", "{", "NaN", "[1,]", '"\\ud800"', "[" * 10_000, b"\xff"])
def test_text_that_is_not_json_is_refused(text: str | bytes) -> None:
    with pytest.raises(InvalidPayload, match="is not valid JSON"):
        decode(text)
