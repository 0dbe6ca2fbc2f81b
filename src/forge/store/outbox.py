"""Statements on forge_outbox, one function each."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from forge.store.jobs import LaneCursor
from forge.store.statement import Row, Rows, Statement, ids, load, nothing, only


class OutboxEntry(NamedTuple):
    """A message to send: its row, the time that taking it gave that row, and of its job."""

    id: int
    send_at: datetime
    sends: int
    job_id: UUID
    is_waiting: bool
    priority: int | None
    queue: str | None
    worker_capability: str | None
    due_in: float
    due_at: float | None


def enable() -> Statement[None]:
    return Statement(load("outbox/enable"), (), nothing)


def disable() -> Statement[None]:
    return Statement(load("outbox/disable"), (), nothing)


def clear() -> Statement[None]:
    return Statement(load("outbox/clear"), (), nothing)


def is_enabled() -> Statement[bool]:
    return Statement(load("outbox/is_enabled"), (), lambda found: bool(found[0]["is_enabled"]))


def take(limit: int, resend_after: float, at_the_latest: float) -> Statement[list[OutboxEntry]]:
    return Statement(load("outbox/take"), (limit, resend_after, at_the_latest), _entries)


def put_back(
    entries: Sequence[OutboxEntry], seconds: float, *, unsent: bool
) -> Statement[list[int]]:
    return Statement(load("outbox/put_back"), (*_taken(entries), seconds, unsent), ids)


def drop(entries: Sequence[OutboxEntry]) -> Statement[list[int]]:
    return Statement(load("outbox/drop"), _taken(entries), ids)


def forget(job_ids: Sequence[UUID]) -> Statement[list[int]]:
    return Statement(load("outbox/forget"), (list(job_ids),), ids)


def sweep(place: LaneCursor, limit: int, due_for: float) -> Statement[Row]:
    return Statement(load("outbox/sweep"), (*place, limit, due_for), only)


def _taken(entries: Sequence[OutboxEntry]) -> tuple[list[int], list[datetime]]:
    return [entry.id for entry in entries], [entry.send_at for entry in entries]


def _entries(found: Rows) -> list[OutboxEntry]:
    return [OutboxEntry(**row) for row in found]
