"""Secrets of a payload in what was said about it: found wherever they stand, at a bounded cost."""

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator
from typing import Any

REDACTED = "[redacted]"
# Shorter values turn up in any text by chance.
SHORTEST_KNOWN = 5
# No text is cut shorter than this when it is stored, so that the end of one may be half a secret.
SHORTEST_CUT = 500
# How much of a secret may stand at the end of a text that was cut; of a longer one the head counts.
LONGEST_CUT = 1_000
# How many characters are searched, over all secrets: a hundred secrets in half a megabyte. Beyond
# that nothing is shown, since a payload of ten thousand secrets would occupy a server for seconds.
MOST_SEARCHED = 50_000_000
# PostgreSQL stores no text that holds it.
_SEPARATOR = "\0"


def texts_in(value: Any) -> Iterator[str]:
    """Return all texts of a JSON value: its strings, its keys, its whole numbers."""
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
    """Return the texts that hold known secrets with what is shown instead; None if it is too much.

    All texts are searched at once: looking into each of many texts for each of many secrets takes
    time that grows with the square of a payload.
    """
    unique = [text for text in dict.fromkeys(texts) if len(text) >= SHORTEST_KNOWN]
    joined = _SEPARATOR.join(unique)
    if len(known) * len(joined) > MOST_SEARCHED:
        return None
    found = [secret for secret in known if secret in joined and secret not in REDACTED]
    if not found:
        return {}
    if joined.count(_SEPARATOR) != len(unique) - 1:  # a text that never was in the database
        return {text: shown for text in unique if (shown := _without(text, found)) != text}
    after = _without(joined, found).split(_SEPARATOR)
    return {text: shown for text, shown in zip(unique, after, strict=True) if text != shown}


def without_cut(text: str, known: Collection[str]) -> str:
    """Return a text without the beginning of a secret at its end, where the text may be cut."""
    if len(text) < SHORTEST_CUT:
        return text
    for secret in known:
        if len(secret) > LONGEST_CUT and (start := text.find(secret[:LONGEST_CUT])) >= 0:
            return text[:start] + REDACTED
    heads = {secret[:SHORTEST_KNOWN] for secret in known}
    ordered = sorted(known)
    for start in range(max(0, len(text) - LONGEST_CUT), len(text) - SHORTEST_KNOWN + 1):
        if text[start : start + SHORTEST_KNOWN] in heads:
            end = text[start:]
            place = bisect_left(ordered, end)
            if place < len(ordered) and ordered[place].startswith(end):
                return text[:start] + REDACTED
    return text


def _without(text: str, secrets: Collection[str]) -> str:
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, REDACTED)
    return text
