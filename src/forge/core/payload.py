"""Python values to JSON text that PostgreSQL's jsonb takes, and back."""

import dataclasses
import math
import re
from decimal import Decimal
from enum import Enum
from types import GeneratorType
from typing import Any, NoReturn

from pydantic import BaseModel
from pydantic_core import from_json, to_json, to_jsonable_python

from forge.core.errors import InvalidPayload, UndecodablePayload
from forge.core.path import step_text

HARD_LIMIT = 262_144
MAX_DEPTH = 64
# Python's own readers, json.loads and from_json, refuse a number with more digits.
MAX_DIGITS = 4300
# PostgreSQL writes numbers without an exponent: only a longer text can hold one beyond a float.
MAX_FLOAT_DIGITS = 308


def encode(value: object, *, what: str = "input", limit: int = HARD_LIMIT) -> str:
    """Write a value as compact JSON, or raise InvalidPayload with the path of what is wrong."""
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
    """Read JSON text, as the database returns it."""
    try:
        value = from_json(text, allow_inf_nan=False)
    except ValueError as error:
        raise UndecodablePayload(
            f"the stored text cannot be read as JSON ({error}); correct it where it was written"
        ) from error
    # A long number with a fraction is read as Infinity, which cannot be written again.
    if len(text) > MAX_FLOAT_DIGITS and _has_long_number(text) and _has_infinity(value):
        raise UndecodablePayload(
            "the stored JSON has a number beyond the range of floats; correct it where it was "
            "written, such as by storing it as text"
        )
    return value


def decode_if_possible(text: str | bytes | None) -> Any:
    """Read stored JSON for display or redaction; None where there is none or it is undecodable."""
    try:
        return None if text is None else decode(text)
    except UndecodablePayload:
        return None


def _encode_if_plain(value: object) -> str | None:
    """Encode a value that is plain JSON; None sends anything else to the careful walk."""
    try:
        if type(value) is not dict:
            if isinstance(value, GeneratorType):  # encoding would run it
                return None
            if isinstance(value, BaseModel):
                value = to_jsonable_python(value)
        raw = to_json(value)
        # Reading it back is the cheapest full check there is: a set, bytes, a number as a key
        # or NaN are written without complaint, and none of them comes back equal.
        decoded = from_json(raw, allow_inf_nan=False)
        if decoded != value:
            return None
        text = raw.decode()
    except Exception:  # whatever a type's own code raised, the walk finds where
        return None
    # A backslash followed by u0000 as text matches as well; the walk then accepts it.
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
# The lookbehind keeps the search linear: a run of digits is looked at once.
_LONG_NUMBER = re.compile(rf"(?<![0-9])[0-9]{{{MAX_FLOAT_DIGITS + 1}}}")
_TOO_LARGE = 10**MAX_DIGITS
_SURROGATE = re.compile("[\ud800-\udfff]")


class _Walk:
    """Turns a value into plain JSON values, keeping track of where it is to say what is wrong."""

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
                self._refuse("is a set, and JSON has none; pass a list")
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
            self._refuse(f"has a key that is {_named(key)}, and JSON keys are text; pass str(key)")
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
        """Convert what pydantic can write: models, dataclasses, dates, UUIDs, decimals, paths."""
        if hasattr(value, "get_secret_value"):  # it would be stored as asterisks
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
                self._refuse(f"cannot be written as JSON ({error}); correct its type", error)
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
