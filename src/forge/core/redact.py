"""What is shown of values that may hold secrets: names and shapes decide, as for payloads."""

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from forge.core.hidden_shapes import has_hidden_shape, looks_secret
from forge.core.known_secrets import REDACTED, SHORTEST_KNOWN, replaced_in, texts_in, without_cut
from forge.core.path import Path
from forge.core.plain_text import LONGEST_NAME, has_plain_shape, is_plain, is_plain_key
from forge.core.sensitive import Allowed, is_secret, meant_name
from forge.core.sensitive_names import hints_at_a_secret, names_a_reference, names_a_secret
from forge.core.sensitive_shapes import (
    CARD_NUMBER,
    LONGEST_TEXT,
    SMALLEST_CARD,
    is_card,
    secret_shape_of,
)


def redact(value: Any, known: Collection[str] = (), allowed: Sequence[str] = ()) -> Any:
    """Return a JSON value without what is secret in it; `known` secrets go wherever they stand.

    What a type says with `allow_sensitive` may lie in its payloads is shown.

    >>> redact({"user": 7, "apiKey": "k-123", "note": "sent with token=abc123"})
    {'user': 7, 'apiKey': '[redacted]', 'note': 'sent with token=[redacted]'}
    """
    if isinstance(value, str):
        return redact_text(value, known)
    replaced = replaced_in(texts_in(value), known) if known else {}
    return REDACTED if replaced is None else _Redaction(replaced, allowed).shown(value, ())


def redact_text(text: str, known: Collection[str] = ()) -> str:
    """Return a text without the secrets that are known, named in it, or look like one."""
    if known:
        found = replaced_in([text], known)
        if found is None:
            return REDACTED
        text = without_cut(found.get(text, text), known)
    if len(text) <= LONGEST_TEXT:
        return text if is_plain(text) else _without_shapes(_without_named(text))
    parts = _parts(_without_named(text))
    return "".join(part if has_plain_shape(part) else _without_shapes(part) for part in parts)


def redact_key(text: str, known: Collection[str] = ()) -> str:
    """Return an idempotency key as it is shown; long numbers are ids there, not cards."""
    if secret_shape_of(text) == CARD_NUMBER and not has_hidden_shape(text):
        found = replaced_in([text], known) if known else {}
        return REDACTED if found is None else found.get(text, text)
    return redact_text(text, known)


def secrets_in(value: Any, allowed: Sequence[str] = ()) -> set[str]:
    """Return the secrets of a payload, to be redacted from what was said about it."""
    found = _secrets(value, (), Allowed(allowed) if allowed else None)
    return {form for secret in found if len(secret) >= SHORTEST_KNOWN for form in _forms(secret)}


class _Redaction:
    """One walk through a value; `replaced` has the texts that held known secrets."""

    def __init__(self, replaced: Mapping[str, str], allowed: Sequence[str]) -> None:
        self._replaced = replaced
        self._allowed = Allowed(allowed) if allowed else None

    def shown(self, value: Any, path: Path) -> Any:
        if isinstance(value, str):
            return redact_text(self._replaced.get(value, value))
        if isinstance(value, dict):
            return {self._key(key): self._entry(value, key, path) for key in value}
        if isinstance(value, list | tuple):
            return [self._item(inner, path, place) for place, inner in enumerate(value)]
        if isinstance(value, int) and not isinstance(value, bool):
            return self._number(value, path)
        return value

    def _key(self, key: Any) -> str:
        key = str(key)
        key = self._replaced.get(key, key)
        return key if is_plain_key(key) else redact_text(key)

    def _entry(self, entry: dict[Any, Any], key: Any, path: Path) -> Any:
        value = entry[key]
        path = (*path, key)
        if self._allowed is not None and self._allowed.covers(path):
            return value
        name = meant_name(entry, key)
        if is_secret(name, value) or _is_hidden(name, value):
            return REDACTED
        return self.shown(value, path)

    def _item(self, value: Any, path: Path, place: int) -> Any:
        path = (*path, place)
        is_allowed = self._allowed is not None and self._allowed.covers(path)
        return value if is_allowed else self.shown(value, path)

    def _number(self, value: int, path: Path) -> Any:
        if self._replaced and str(value) in self._replaced:
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
                name = meant_name(value, key)
                if is_secret(name, inner) or _is_hidden(name, inner):
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


def _is_hidden(name: object, value: Any) -> bool:
    """Whether a name hints at a secret, and the value or one of a list looks like one."""
    if not isinstance(name, str) or not hints_at_a_secret(name):
        return False
    return any(map(looks_secret, value)) if isinstance(value, list) else looks_secret(value)


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


def _without_named(text: str) -> str:
    """Take out values that stand after the name of a secret: `token=…`, `"apiKey": "…"`."""
    kept: list[str] = []
    end = 0
    for named in _NAME.finditer(text) if ":" in text or "=" in text else ():
        name = named["name"][-LONGEST_NAME:]
        is_named = names_a_secret(name)
        if named.start() < end or not (is_named or hints_at_a_secret(name)):
            continue
        value = _VALUE.match(text, named.end())
        if value and (is_named or looks_secret(value[0].strip("\\\"'"))):
            kept += text[end : named.end()], REDACTED
            end = value.end()
    return "".join([*kept, text[end:]]) if kept else text


def _without_shapes(text: str) -> str:
    """Take out the words that look like secrets; where they cannot be told apart, all of it."""
    if not _is_shaped(text):
        return text
    words = _WORDS.split(text)
    for place, word in enumerate(words):
        before = words[place - 2].lower().strip("\"'") if place > 1 else ""
        is_credential = before in ("bearer", "basic") and _is_shaped(f"{before} {word}")
        if is_credential or (not is_plain(word) and _is_shaped(word)):
            words[place] = REDACTED
    text = "".join(words)
    return REDACTED if _is_shaped(text) else text


def _is_shaped(text: str) -> bool:
    """Whether a text holds what looks like a secret; that it is a document does not make it one."""
    text = text.replace(REDACTED, "*")
    return secret_shape_of(text) is not None or has_hidden_shape(text)


def _parts(text: str) -> Iterator[str]:
    """Cut a long text where words end, into parts that are looked at as a whole."""
    start = 0
    while len(text) - start > LONGEST_TEXT:
        last = start + LONGEST_TEXT
        end = max(text.rfind(" ", start, last), text.rfind("\n", start, last)) + 1
        yield text[start : end or last]
        start = end or last
    yield text[start:]


_SCHEME = re.compile(r"(?i)(?:bearer|basic|token|digest)\s+(\S{5,})")
_WORDS = re.compile(r"(\s+)")
# Each run of characters is read once: it starts where none stands before it, and gives none back.
_NAME = re.compile(
    r"(?<![\w.-])(?P<name>[\w.-]{2,}+)[\"'\\]*+\s*+(?:=>|[:=])\s*+(?:Bearer |Basic )?"
)
_VALUE = re.compile(re.escape(REDACTED) + r"|\\?\"[^\"]+\"|\\?'[^']+'|[^\s\"'&,;}\])]+")
