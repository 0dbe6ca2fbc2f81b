"""Encodes Python values as JSON that PostgreSQL's jsonb accepts, and decodes it."""

import dataclasses
import json
import math
import re
from decimal import Decimal
from enum import Enum
from types import GeneratorType
from typing import Any, NoReturn

from pydantic import BaseModel
from pydantic_core import from_json, to_json, to_jsonable_python

from forge.core.errors import InvalidPayload, UndecodablePayload

Path = tuple[str | int, ...]
MAX_KEY_SHOWN = 60


def step_text(step: str | int) -> str:
    """Format one step of a path: a key, or an index in a list.

    >>> step_text("user"), step_text(0), step_text("first name")
    ('.user', '[0]', '["first name"]')
    """
    if isinstance(step, int):
        return f"[{step}]"
    shown = step if len(step) <= MAX_KEY_SHOWN else step[:MAX_KEY_SHOWN] + "…"
    return f".{shown}" if _NAME.fullmatch(shown) else f"[{json.dumps(shown)}]"


_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


HARD_LIMIT = 262_144
MAX_DEPTH = 64
# The limit of digits in a number of json.loads and from_json.
MAX_DIGITS = 4300
# PostgreSQL writes numbers without an exponent: only a longer number can exceed a float.
MAX_FLOAT_DIGITS = 308


def encode(value: object, *, what: str = "input", limit: int = HARD_LIMIT) -> str:
    """Encode a value as compact JSON, or raise InvalidPayload with the path of the problem."""
    text = _encode_if_plain(value)
    if text is None:
        text = to_json(_Walk(what).plain(value)).decode()
    size = len(text) if text.isascii() else len(text.encode())
    if size > limit:
        raise InvalidPayload(
            f"{what} is {size:,} bytes of JSON, the limit is {limit:,} bytes; "
            "store the content elsewhere and pass a reference to it"
        )
    return text


def decode(text: str | bytes) -> Any:
    """Decode JSON text from the database."""
    try:
        value = from_json(text, allow_inf_nan=False)
    except ValueError as error:
        raise UndecodablePayload(
            f"the stored text is not valid JSON ({error}); correct it where it was written"
        ) from error
    # A long number with a fraction is decoded as Infinity, which cannot be encoded again.
    if len(text) > MAX_FLOAT_DIGITS and _has_long_number(text) and _has_infinity(value):
        raise UndecodablePayload(
            "the stored JSON has a number beyond the range of floats; correct it where it was "
            "written, such as by storing it as text"
        )
    return value


def decode_if_possible(text: str | bytes | None) -> Any:
    """Decode stored JSON for display or redaction; None if it is null or undecodable."""
    try:
        return None if text is None else decode(text)
    except UndecodablePayload:
        return None


def _encode_if_plain(value: object) -> str | None:
    """Encode a value if it is plain JSON; otherwise return None, and _Walk converts it."""
    try:
        if type(value) is not dict:
            if isinstance(value, GeneratorType):  # encoding would run it
                return None
            if isinstance(value, BaseModel):
                value = to_jsonable_python(value)
        raw = to_json(value)
        # Decoding it again is the cheapest complete check: sets, bytes, numbers as keys and NaN
        # are encoded without an error, but do not decode to an equal value.
        decoded = from_json(raw, allow_inf_nan=False)
        if decoded != value:
            return None
        text = raw.decode()
    except Exception:  # raised by a type's own code: the walk reports where
        return None
    # An escaped backslash followed by u0000 matches too; the walk then accepts it.
    if "\\u0000" in text or _is_too_deep(text, decoded):
        return None
    return text


def _is_too_deep(text: str, decoded: Any) -> bool:
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return False
    level = [decoded]
    for _ in range(MAX_DEPTH):
        level = [
            child
            for parent in level
            for child in (parent.values() if type(parent) is dict else parent)
            if type(child) in _CONTAINERS
        ]
        if not level:
            return False
    return True


def _has_long_number(text: str | bytes) -> bool:
    return _LONG_NUMBER.search(text if isinstance(text, str) else text.decode()) is not None


def _has_infinity(value: Any) -> bool:
    level = [value]
    while level:
        if any(type(item) is float and math.isinf(item) for item in level):
            return True
        level = [
            child
            for parent in level
            if type(parent) in _CONTAINERS
            for child in (parent.values() if type(parent) is dict else parent)
        ]
    return False


_CONTAINERS = (dict, list)
# The lookbehind keeps the search linear: each run of digits is scanned once.
_LONG_NUMBER = re.compile(rf"(?<![0-9])[0-9]{{{MAX_FLOAT_DIGITS + 1}}}")
_TOO_LARGE = 10**MAX_DIGITS
_SURROGATE = re.compile("[\ud800-\udfff]")


class _Walk:
    """Converts a value to plain JSON values, and tracks the path for errors."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.steps: list[str | int] = []
        self.entered: list[int] = []

    def plain(self, value: object) -> object:
        match value:
            case None | bool():
                return value
            case Enum():
                return self.plain(value.value)
            case str():
                return self._text(value)
            case int():
                return self._whole(value)
            case float():
                return self._finite(value)
            case dict() | list() | tuple():
                return self._container(value)
            case bytes() | bytearray() | memoryview():
                self._refuse("is bytes; pass base64 text, or a reference to where they are stored")
            case set() | frozenset():
                self._refuse("is a set, which JSON does not have; pass a list")
            case type() | complex() | GeneratorType():
                self._refuse_type(value)
        return self._converted(value)

    def _container(self, value: Any) -> object:
        if id(value) in self.entered:
            self._refuse("contains itself; pass an id in place of the inner reference")
        if len(self.entered) >= MAX_DEPTH:
            self._refuse(f"is nested deeper than {MAX_DEPTH} levels; flatten it")
        self.entered.append(id(value))
        if isinstance(value, dict):
            plain: object = {self._key(key): self._child(key, value[key]) for key in value}
        else:
            plain = [self._child(index, child) for index, child in enumerate(value)]
        self.entered.pop()
        return plain

    def _child(self, step: str | int, value: object) -> object:
        self.steps.append(step)
        plain = self.plain(value)
        self.steps.pop()
        return plain

    def _key(self, key: object) -> str:
        if not isinstance(key, str):
            self._refuse(f"has a key that is {_named(key)}, but JSON keys are text; pass str(key)")
        self.steps.append(key)
        self._text(key)
        self.steps.pop()
        return str.__str__(key)

    def _text(self, value: str) -> str:
        if "\0" in value:
            self._refuse("has a NUL character, which PostgreSQL cannot store; remove it")
        if _SURROGATE.search(value):
            self._refuse(
                "has a lone surrogate, which is not valid Unicode; "
                'decode its source with errors="replace"'
            )
        return value

    def _whole(self, value: int) -> int:
        if abs(value) >= _TOO_LARGE:
            self._refuse(f"is a number of more than {MAX_DIGITS:,} digits; pass it as text")
        return value

    def _finite(self, value: float) -> float:
        if not math.isfinite(value):
            self._refuse("is NaN or Infinity, which JSON does not have; pass None or text")
        return value

    def _converted(self, value: object) -> object:
        """Convert types that pydantic supports, such as models, dataclasses, dates and UUIDs."""
        if hasattr(value, "get_secret_value"):  # it would be encoded as asterisks
            self._refuse("is a secret; pass a reference from which the job can look it up")
        if isinstance(value, Decimal) and not value.is_finite():
            self._refuse("is NaN or Infinity, which JSON does not have; pass None or text")
        declared = hasattr(value, "__pydantic_serializer__")
        if not declared and dataclasses.is_dataclass(value):
            return self.plain({f.name: getattr(value, f.name) for f in dataclasses.fields(value)})
        try:
            plain = to_jsonable_python(value)
        except Exception as error:
            if declared:
                self._refuse(f"cannot be encoded as JSON ({error}); correct its type", error)
            self._refuse_type(value)
        if isinstance(plain, dict | list) and not declared:
            self._refuse_type(value)
        return self.plain(plain)

    def _refuse_type(self, value: object) -> NoReturn:
        self._refuse(
            f"is {_named(value)}, which JSON does not have; "
            "pass text, a number, a list, a dict or a pydantic model"
        )

    def _refuse(self, fault: str, cause: Exception | None = None) -> NoReturn:
        path = "$" + "".join(map(step_text, self.steps))
        raise InvalidPayload(f"{self.what}: {path} {fault}", path) from cause


def _named(value: object) -> str:
    kind = value if isinstance(value, type) else type(value)
    name = (
        kind.__qualname__
        if kind.__module__ == "builtins"
        else f"{kind.__module__}.{kind.__qualname__}"
    )
    return f"the class {name}" if kind is value else f"of type {name}"
