"""Redacts secrets in values, by the same names and shapes as the payload rules."""

import json
import re
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from forge.core.payload import Path
from forge.core.sensitive.findings import Allowed, effective_name, is_secret
from forge.core.sensitive.names import hints_at_a_secret, names_a_reference, names_a_secret
from forge.core.sensitive.shapes import (
    CARD_NUMBER,
    MAX_NAME_CHARS,
    MAX_TEXT_CHARS,
    MIN_CARD_NUMBER,
    has_hidden_shape,
    has_plain_shape,
    is_card,
    is_plain,
    is_plain_key,
    looks_secret,
    secret_shape_of,
)

REDACTED = "[redacted]"
# Shorter values occur in any text by chance.
MIN_SECRET_CHARS = 5
# Texts are truncated to no less than this when stored; such a text may end with half a secret.
MIN_TRUNCATED = 500
# How much of a secret is searched for at the end of a truncated text.
MAX_CUT = 1_000
# Limit of text length times secrets: a hundred secrets in half a megabyte. Beyond it everything is
# redacted, because a payload of ten thousand secrets would block a server for seconds.
MAX_SEARCHED = 50_000_000
# PostgreSQL cannot store it in text.
_SEPARATOR = "\0"


def texts_in(value: Any) -> Iterator[str]:
    """Yield all texts of a JSON value: strings, keys and integers."""
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            yield from map(str, value)
            waiting += value.values()
        elif isinstance(value, list | tuple):
            waiting += value
        elif isinstance(value, int) and not isinstance(value, bool):
            yield str(value)


def replaced_in(texts: Iterable[str], known: Collection[str]) -> dict[str, str] | None:
    """Map texts that contain known secrets to redacted ones; None if there is too much text.

    All texts are searched at once: searching each text for each secret would take time that is
    quadratic in the size of a payload.
    """
    unique = [text for text in dict.fromkeys(texts) if len(text) >= MIN_SECRET_CHARS]
    joined = _SEPARATOR.join(unique)
    if len(known) * len(joined) > MAX_SEARCHED:
        return None
    found = [secret for secret in known if secret in joined and secret not in REDACTED]
    if not found:
        return {}
    if joined.count(_SEPARATOR) != len(unique) - 1:  # a text that did not come from the database
        return {text: shown for text in unique if (shown := _without(text, found)) != text}
    after = _without(joined, found).split(_SEPARATOR)
    return {text: shown for text, shown in zip(unique, after, strict=True) if text != shown}


def without_cut(text: str, known: Collection[str]) -> str:
    """Redact the beginning of a secret at the end of a text that may be truncated."""
    if len(text) < MIN_TRUNCATED:
        return text
    for secret in known:
        if len(secret) > MAX_CUT and (start := text.find(secret[:MAX_CUT])) >= 0:
            return text[:start] + REDACTED
    heads = {secret[:MIN_SECRET_CHARS] for secret in known}
    ordered = sorted(known)
    for start in range(max(0, len(text) - MAX_CUT), len(text) - MIN_SECRET_CHARS + 1):
        if text[start : start + MIN_SECRET_CHARS] in heads:
            end = text[start:]
            place = bisect_left(ordered, end)
            if place < len(ordered) and ordered[place].startswith(end):
                return text[:start] + REDACTED
    return text


def _without(text: str, secrets: Collection[str]) -> str:
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, REDACTED)
    return text


def redact(value: Any, known: Collection[str] = (), allowed: Sequence[str] = ()) -> Any:
    """Return a JSON value with secrets redacted; `known` secrets are redacted anywhere.

    Values that the type allows with `allow_sensitive` are shown.

    >>> redact({"user": 7, "apiKey": "k-123", "note": "sent with token=abc123"})
    {'user': 7, 'apiKey': '[redacted]', 'note': 'sent with token=[redacted]'}
    """
    if isinstance(value, str):
        return redact_text(value, known)
    replaced = replaced_in(texts_in(value), known) if known else {}
    return REDACTED if replaced is None else _Redaction(replaced, allowed).shown(value, ())


def redact_text(text: str, known: Collection[str] = ()) -> str:
    """Redact the parts of a text that are known secrets, named as secrets, or look like one."""
    if known:
        found = replaced_in([text], known)
        if found is None:
            return REDACTED
        text = without_cut(found.get(text, text), known)
    if len(text) <= MAX_TEXT_CHARS:
        return text if is_plain(text) else _without_shapes(_without_named(text))
    parts = _parts(_without_named(text))
    return "".join(part if has_plain_shape(part) else _without_shapes(part) for part in parts)


def redact_key(text: str, known: Collection[str] = ()) -> str:
    """Redact an idempotency key; long numbers in it are ids, not card numbers."""
    if secret_shape_of(text) == CARD_NUMBER and not has_hidden_shape(text):
        found = replaced_in([text], known) if known else {}
        return REDACTED if found is None else found.get(text, text)
    return redact_text(text, known)


def secrets_in(value: Any, allowed: Sequence[str] = ()) -> set[str]:
    """Return the secrets of a payload, to redact them in errors, logs and notes."""
    found = _secrets(value, (), Allowed(allowed) if allowed else None)
    return {form for secret in found if len(secret) >= MIN_SECRET_CHARS for form in _forms(secret)}


class _Redaction:
    """One walk through a value; `replaced` maps texts with known secrets to redacted ones."""

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
        name = effective_name(entry, key)
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
        if value < MIN_CARD_NUMBER or (path and names_a_reference(str(path[-1]))):
            return value
        return REDACTED if is_card(str(value)) else value


def _secrets(value: Any, path: Path, allowed: Allowed | None) -> Iterator[str]:
    match value:
        case dict():
            for key, inner in value.items():
                here = (*path, key)
                if allowed is not None and allowed.covers(here):
                    continue
                name = effective_name(value, key)
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
    """Whether a name hints at a secret, and the value or a list item looks like one."""
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
    """Return the forms a secret may be quoted in: repr(), JSON, URL, without its scheme."""
    if secret.isascii() and secret.isalnum():
        return {secret}
    bare = {bearer[1]} if (bearer := _SCHEME.fullmatch(secret)) else set()
    return {secret, repr(secret)[1:-1], json.dumps(secret)[1:-1], quote(secret, safe=""), *bare}


def _without_named(text: str) -> str:
    """Redact values that follow the name of a secret: `token=…`, `"apiKey": "…"`."""
    kept: list[str] = []
    end = 0
    for named in _NAME.finditer(text) if ":" in text or "=" in text else ():
        name = named["name"][-MAX_NAME_CHARS:]
        is_named = names_a_secret(name)
        if named.start() < end or not (is_named or hints_at_a_secret(name)):
            continue
        value = _VALUE.match(text, named.end())
        if value and (is_named or looks_secret(value[0].strip("\\\"'"))):
            kept += text[end : named.end()], REDACTED
            end = value.end()
    return "".join([*kept, text[end:]]) if kept else text


def _without_shapes(text: str) -> str:
    """Redact words that look like secrets; the whole text if no single word does."""
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
    """Whether a text contains something that looks like a secret; documents do not count."""
    text = text.replace(REDACTED, "*")
    return secret_shape_of(text) is not None or has_hidden_shape(text)


def _parts(text: str) -> Iterator[str]:
    """Split a long text at word boundaries, into parts that are checked one by one."""
    start = 0
    while len(text) - start > MAX_TEXT_CHARS:
        last = start + MAX_TEXT_CHARS
        end = max(text.rfind(" ", start, last), text.rfind("\n", start, last)) + 1
        yield text[start : end or last]
        start = end or last
    yield text[start:]


_SCHEME = re.compile(r"(?i)(?:bearer|basic|token|digest)\s+(\S{5,})")
_WORDS = re.compile(r"(\s+)")
# Each run of characters is scanned once: lookbehind and possessive quantifiers avoid backtracking.
_NAME = re.compile(
    r"(?<![\w.-])(?P<name>[\w.-]{2,}+)[\"'\\]*+\s*+(?:=>|[:=])\s*+(?:Bearer |Basic )?"
)
_VALUE = re.compile(re.escape(REDACTED) + r"|\\?\"[^\"]+\"|\\?'[^']+'|[^\s\"'&,;}\])]+")
