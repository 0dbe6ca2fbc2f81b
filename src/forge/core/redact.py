"""What is shown of values that may hold secrets: names and shapes decide, as for payloads."""

import json
import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any
from urllib.parse import quote

from forge.core.path import Path
from forge.core.plain_text import is_plain, is_plain_key
from forge.core.sensitive import Allowed, is_secret, meant_name
from forge.core.sensitive_names import names_a_reference, names_a_secret
from forge.core.sensitive_shapes import LONGEST_TEXT, is_card, secret_shape_of

REDACTED = "[redacted]"
# Shorter values turn up in any text by chance.
SHORTEST_KNOWN = 5
# No text is cut shorter than this when it is stored, so that the end of one may be half a secret.
SHORTEST_CUT = 500
SMALLEST_CARD = 10**12


def redact(value: Any, known: Collection[str] = (), allowed: Sequence[str] = ()) -> Any:
    """Return a JSON value without what is secret in it; `known` secrets go wherever they stand.

    What a type says with `allow_sensitive` may lie in its payloads is shown.

    >>> redact({"user": 7, "apiKey": "k-123", "note": "sent with token=abc123"})
    {'user': 7, 'apiKey': '[redacted]', 'note': 'sent with token=[redacted]'}
    """
    return _Redaction(known, allowed).shown(value, ())


def redact_text(text: str, known: Collection[str] = ()) -> str:
    """Return a text without the secrets that are known, named in it, or look like one."""
    if known:
        text = _without_known(text, known)
    if is_plain(text):
        return text
    text = _without_named(text)
    if len(text) <= LONGEST_TEXT:
        return _without_shapes(text)
    return "".join(_without_shapes(part) for part in _parts(text))


def secrets_in(value: Any, allowed: Sequence[str] = ()) -> set[str]:
    """Return the secrets of a payload, to be redacted from what was said about it."""
    found = _secrets(value, (), Allowed(allowed) if allowed else None)
    return {form for secret in found if len(secret) >= SHORTEST_KNOWN for form in _forms(secret)}


class _Redaction:
    """One walk through a value."""

    def __init__(self, known: Collection[str], allowed: Sequence[str]) -> None:
        self._known = known
        self._allowed = Allowed(allowed) if allowed else None

    def shown(self, value: Any, path: Path) -> Any:
        match value:
            case str():
                return redact_text(value, self._known)
            case dict():
                return {self._key(key): self._entry(value, key, path) for key in value}
            case list() | tuple():
                return [self._item(inner, (*path, place)) for place, inner in enumerate(value)]
            case int() if not isinstance(value, bool):
                return self._number(value, path)
        return value

    def _key(self, key: Any) -> str:
        key = str(key)
        return key if not self._known and is_plain_key(key) else redact_text(key, self._known)

    def _entry(self, entry: dict[Any, Any], key: Any, path: Path) -> Any:
        value = entry[key]
        path = (*path, key)
        if self._allowed is not None and self._allowed.covers(path):
            return value
        if is_secret(meant_name(entry, key), value):
            return REDACTED
        return self.shown(value, path)

    def _item(self, value: Any, path: Path) -> Any:
        is_allowed = self._allowed is not None and self._allowed.covers(path)
        return value if is_allowed else self.shown(value, path)

    def _number(self, value: int, path: Path) -> Any:
        if self._known and str(value) in self._known:
            return REDACTED
        if value < SMALLEST_CARD or (path and names_a_reference(str(path[-1]))):
            return value
        return REDACTED if is_card(str(value)) else value


def _secrets(value: Any, path: Path, allowed: Allowed | None) -> Iterator[str]:
    match value:
        case dict():
            for key, inner in value.items():
                here = (*path, key)
                if allowed is not None and allowed.covers(here):
                    continue
                if is_secret(meant_name(value, key), inner):
                    yield from _texts(inner)
                else:
                    yield from _secrets(inner, here, allowed)
        case list():
            for place, inner in enumerate(value):
                here = (*path, place)
                if allowed is None or not allowed.covers(here):
                    yield from _secrets(inner, here, allowed)
        case str() if not is_plain(value) and _is_shaped(value):
            yield value


def _texts(value: Any) -> Iterator[str]:
    match value:
        case dict():
            for inner in value.values():
                yield from _texts(inner)
        case list():
            for inner in value:
                yield from _texts(inner)
        case str() | int() | float():
            yield str(value)


def _forms(secret: str) -> set[str]:
    """Return a secret as it may be quoted: by repr(), in JSON, in a URL, without its scheme."""
    if secret.isascii() and secret.isalnum():
        return {secret}
    bare = {bearer[1]} if (bearer := _SCHEME.fullmatch(secret)) else set()
    return {secret, repr(secret)[1:-1], json.dumps(secret)[1:-1], quote(secret, safe=""), *bare}


def _without_known(text: str, known: Collection[str]) -> str:
    for secret in sorted(known, key=len, reverse=True):
        text = text.replace(secret, REDACTED)
    if len(text) < SHORTEST_CUT:
        return text
    for secret in known:
        for length in range(len(secret) - 1, SHORTEST_KNOWN - 1, -1):
            if text.endswith(secret[:length]):
                return text[:-length] + REDACTED
    return text


def _without_named(text: str) -> str:
    """Take out values that stand after the name of a secret: `token=…`, `"apiKey": "…"`."""
    kept: list[str] = []
    end = 0
    for named in _NAME.finditer(text):
        if named.start() < end or not names_a_secret(named["name"]):
            continue
        if value := _VALUE.match(text, named.end()):
            kept += text[end : named.end()], REDACTED
            end = value.end()
    return "".join([*kept, text[end:]])


def _without_shapes(text: str) -> str:
    """Take out the words that look like secrets; where they cannot be told apart, all of it."""
    if not _is_shaped(text):
        return text
    words = _WORDS.split(text)
    for place, word in enumerate(words):
        before = words[place - 2].lower().strip("\"'") if place > 1 else ""
        if _is_shaped(word) or (before in ("bearer", "basic") and _is_shaped(f"{before} {word}")):
            words[place] = REDACTED
    text = "".join(words)
    return REDACTED if _is_shaped(text) else text


def _is_shaped(text: str) -> bool:
    """Whether a text holds what looks like a secret; that it is a document does not make it one."""
    return secret_shape_of(text.replace(REDACTED, "*")) is not None


def _parts(text: str) -> Iterator[str]:
    """Cut a long text where words end, into parts that are looked at as a whole."""
    while len(text) > LONGEST_TEXT:
        end = max(text.rfind(" ", 0, LONGEST_TEXT), text.rfind("\n", 0, LONGEST_TEXT)) + 1
        end = end or LONGEST_TEXT
        yield text[:end]
        text = text[end:]
    yield text


_SCHEME = re.compile(r"(?i)(?:bearer|basic|token|digest)\s+(\S{5,})")
_WORDS = re.compile(r"(\s+)")
_NAME = re.compile(r"\b(?P<name>[A-Za-z_][\w.-]{1,60})[\"'\\]*\s*(?:=>|[:=])\s*(?:Bearer |Basic )?")
_VALUE = re.compile(re.escape(REDACTED) + r"|\\?\"[^\"]+\"|\\?'[^']+'|[^\s\"'&,;}\])]+")
