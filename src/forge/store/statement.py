"""A SQL statement for sync and async drivers: text, arguments, and how to read its rows."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Generic, TypeVar

T_co = TypeVar("T_co", covariant=True)
Row = Mapping[str, Any]
Rows = Sequence[Row]


@dataclass(frozen=True, slots=True)
class Statement(Generic[T_co]):
    """A statement to run, with any driver."""

    sql: str
    args: tuple[Any, ...]
    read: Callable[[Rows], T_co]


@cache
def load(name: str) -> str:
    """Return the text of `sql/<name>.sql`."""
    text = files("forge").joinpath("sql", f"{name}.sql").read_text(encoding="utf-8")
    _NAMES[text] = name
    return text


@cache
def load_around(name: str, inner: str) -> str:
    """Return the text of `sql/<name>.sql` with `sql/<inner>.sql` in place of `:inner`."""
    text = load(name).replace(":inner", load(inner).strip().rstrip(";"))
    _NAMES[text] = name
    return text


def name_of(statement: Statement[Any]) -> str:
    """Return the name of a statement's file, such as `jobs/claim`."""
    return _NAMES.get(statement.sql, "other")


_NAMES: dict[str, str] = {}


def rows(found: Rows) -> Rows:
    return found


def only(found: Rows) -> Row:
    (row,) = found
    return row


def ids(found: Rows) -> list[Any]:
    return [row["id"] for row in found]


def nothing(found: Rows) -> None:
    return None


def columns(entries: Sequence[tuple[Any, ...]]) -> tuple[list[Any], ...]:
    """Transpose rows into one list per column, the parameters of a batch statement."""
    return tuple(map(list, zip(*entries, strict=True)))
