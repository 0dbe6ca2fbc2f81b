"""Statements on forge_pauses, one function each."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from forge.core.pause import Pause
from forge.store.statement import Row, Rows, Statement, load, nothing, only


class NewPause(NamedTuple):
    """A pause to add, in the order of pauses/add's parameters."""

    id: UUID
    type: str | None
    queue: str | None
    # When it ends, or after how long; neither: when it is removed.
    until: datetime | None
    duration: timedelta | None
    reason: str
    actor: str | None


class KnownNames(NamedTuple):
    """What a pause can name."""

    types: Sequence[str]
    queues: Sequence[str]


def lock() -> Statement[None]:
    return Statement(load("pauses/lock"), (), nothing)


def add(new: NewPause) -> Statement[Pause | None]:
    return Statement(load("pauses/add"), tuple(new), _pause_or_none)


def remove(
    pause_id: UUID | None,
    type: str | None,
    queue: str | None,
    reason: str | None,
    actor: str | None,
) -> Statement[Pause | None]:
    """End the pause with this id, or where it is None that of a type and queue."""
    return Statement(load("pauses/remove"), (pause_id, type, queue, reason, actor), _pause_or_none)


def current() -> Statement[list[Pause]]:
    """Return the pauses in effect, oldest first."""
    return Statement(load("pauses/current"), (), lambda found: list(map(_pause, found)))


def known_names() -> Statement[KnownNames]:
    return Statement(load("pauses/known_names"), (), lambda found: KnownNames(**only(found)))


def _pause_or_none(found: Rows) -> Pause | None:
    return _pause(found[0]) if found else None


def _pause(row: Row) -> Pause:
    names = ("type", "queue", "until", "reason", "actor", "created_at")
    return Pause(pause_id=row["id"], **{name: row[name] for name in names})
