"""Finds sensitive values in payloads, with their paths."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from forge.core.errors import Fault, InvalidValue
from forge.core.payload import Path, step_text
from forge.core.sensitive.content import NOWHERE, ContentPlace, is_content, place_of
from forge.core.sensitive.names import names_a_figure, names_a_reference, names_a_secret, squashed
from forge.core.sensitive.shapes import CARD_NUMBER, MIN_CARD_NUMBER, is_card, shape_of

# How many faults are reported for one payload.
MAX_FAULTS = 10


def sensitive_faults(payload: Any, allowed: Sequence[str] = ()) -> list[Fault]:
    """Return the sensitive values in a payload: path and kind, never the value itself.

    >>> sensitive_faults({"user": {"apiKey": "k-123"}})[0].path
    '$.user.apiKey'
    """
    faults: list[Fault] = []
    for path, what in _found(payload, (), Allowed(allowed), NOWHERE):
        advice = "store it elsewhere and pass a reference"
        faults.append(Fault(path_text(path), f"{what}; {advice}, or allow it with allow_sensitive"))
        if len(faults) == MAX_FAULTS:
            break
    return faults


def check_allowed(allowed: Iterable[str], name: str) -> tuple[str, ...]:
    """Check the `allow_sensitive` of a job type: names of keys, or paths such as "$.body.text"."""
    if isinstance(allowed, str) or not isinstance(allowed, Iterable):
        raise InvalidValue(f"{name}: allow_sensitive must be a list; write [{allowed!r}]")
    entries = tuple(allowed)
    for entry in entries:
        if not isinstance(entry, str) or not (entry.startswith(("$.", "$[")) or squashed(entry)):
            raise InvalidValue(
                f"{name}: allow_sensitive takes names of keys, such as 'token_count', and paths, "
                f"such as '$.body.text' or '$.items[*].token', not {entry!r}"
            )
    return entries


def path_text(path: Path) -> str:
    """Format a path as `$.user.tokens[0]`; a key that is itself sensitive is not shown."""
    return "$" + "".join(map(_step, path))


def is_secret(name: object, value: Any) -> bool:
    """Whether a value is secret by its name, and neither empty nor a mere number."""
    if not isinstance(name, str) or not names_a_secret(name):
        return False
    if value is None or isinstance(value, bool) or value in ("", [], {}):
        return False
    return not (isinstance(value, int | float) and names_a_figure(name))


def effective_name(entry: Mapping[Any, Any], key: Any) -> Any:
    """Return the name of a value: "Authorization" for {"name": "Authorization", "value": "…"}."""
    if key != "value":
        return key
    named = entry.get("name", entry.get("key", entry.get("header")))
    return named if isinstance(named, str) else key


class Allowed:
    """The values that a type allows in its payloads although they look sensitive."""

    def __init__(self, entries: Sequence[str]) -> None:
        self.names = {squashed(entry) for entry in entries if not entry.startswith("$")}
        self.paths = {entry for entry in entries if entry.startswith("$")}

    def covers(self, path: Path) -> bool:
        if self.names and isinstance(path[-1], str) and squashed(path[-1]) in self.names:
            return True
        if not self.paths:
            return False
        text = path_text(path)
        return text in self.paths or _INDEX.sub("[*]", text) in self.paths


def _found(
    value: Any, path: Path, allowed: Allowed, place: ContentPlace
) -> Iterator[tuple[Path, str]]:
    if isinstance(value, dict):
        for key in value:
            yield from _entry(value, key, (*path, key), allowed, place)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            here = (*path, index)
            if not allowed.covers(here):
                yield from _found(inner, here, allowed, place)
    elif isinstance(value, str) and is_content(value, place.level):
        is_named = isinstance(path[-1], str)
        yield path, f"{'has the name' if is_named else 'is part'} of an embedded body or document"
    elif what := _looks_like(value, path):
        yield path, f"looks like {what}"


def _looks_like(value: Any, path: Path) -> str | None:
    if isinstance(value, str):
        return shape_of(value)
    if isinstance(value, int) and value >= MIN_CARD_NUMBER and is_card(str(value)):
        return None if path and names_a_reference(str(path[-1])) else CARD_NUMBER
    return None


def _entry(
    entry: dict[str, Any], key: str, path: Path, allowed: Allowed, place: ContentPlace
) -> Iterator[tuple[Path, str]]:
    if allowed.covers(path):
        return
    value = entry[key]
    if what := shape_of(key):
        yield path, f"has a name that looks like {what}"
    name = effective_name(entry, key)
    if is_secret(name, value):
        yield path, "has the name of a secret"
    else:
        here = place_of(name, place.inside, "subject" in entry or "Subject" in entry)
        yield from _found(value, path, allowed, here)


def _step(step: str | int) -> str:
    return '["…"]' if isinstance(step, str) and shape_of(step) else step_text(step)


_INDEX = re.compile(r"\[\d+\]")
