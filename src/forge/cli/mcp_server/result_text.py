"""Turns an answer of the HTTP API into a text of bounded size."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

# About ten thousand tokens.
MAX_CHARACTERS = 40_000
# The longest text and the most entries of a list or an object, tried in this order until it fits.
LIMITS = ((4_000, 200), (1_000, 50), (200, 20), (80, 5))
# Names under which the routes return rows.
ROWS = ("items", "dlq_items", "groups", "series")
# A model has no use for a token, and must not pass it on.
SECRET = "watch_token"
SHORTENED = (
    "This result was too long, so that it was shortened: “… (N more)” marks what is missing. Where "
    "the tool takes them, use a smaller `limit`, a longer `step` or more filters."
)


class ResultText(NamedTuple):
    """JSON, and whether something is missing."""

    text: str
    is_shortened: bool


def result_text(answer: Any) -> ResultText:
    """Return an answer as JSON, without fields that are null, cut until it fits."""
    found = _without_nulls(answer)
    whole = _json(found)
    if len(whole) <= MAX_CHARACTERS:
        return ResultText(whole, False)
    for longest_text, most_entries in LIMITS:
        cut = _json(_cut(found, longest_text, most_entries))
        if len(cut) <= MAX_CHARACTERS:
            return ResultText(cut, True)
    return ResultText(_cut_text(cut, MAX_CHARACTERS), True)


def _without_nulls(answer: Any) -> Any:
    """Leave out the null fields of an answer and its rows, but not those of an input."""
    if not isinstance(answer, Mapping):
        return answer
    shown = _given(answer)
    for name in ROWS:
        if isinstance(rows := shown.get(name), list):
            shown[name] = [_given(row) if isinstance(row, Mapping) else row for row in rows]
    return shown


def _given(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if value is not None and name != SECRET}


def _cut(value: Any, longest_text: int, most_entries: int) -> Any:
    match value:
        case str() if len(value) > longest_text:
            return _cut_text(value, longest_text)
        case list():
            kept = [_cut(each, longest_text, most_entries) for each in value[:most_entries]]
            more = len(value) - len(kept)
            return [*kept, _mark(more)] if more else kept
        case dict():
            names = list(value)[:most_entries]
            shown = {name: _cut(value[name], longest_text, most_entries) for name in names}
            more = len(value) - len(names)
            return shown | {"…": _mark(more)} if more else shown
        case _:
            return value


def _cut_text(text: str, longest: int) -> str:
    return f"{text[:longest]}{_mark(len(text) - longest)}"


def _mark(more: int) -> str:
    return f"… ({more:,} more)"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
