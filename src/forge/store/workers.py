"""Statements on forge_workers, one function each."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from forge.store.statement import Row, Rows, Statement, ids, load, only, rows


class Registration(NamedTuple):
    """The identity and configuration of a worker, in the order of workers/register's parameters."""

    id: UUID
    incarnation: UUID
    hostname: str
    pid: int
    version: str
    capabilities: list[str]
    queues: list[str] | None
    job_types: list[str]
    max_concurrent: int
    schedule_types: Sequence[str] = ()


class Drain(NamedTuple):
    """Since when an operator has a worker claim nothing, by whom and why."""

    at: datetime | None = None
    by: str | None = None
    reason: str | None = None

    def __bool__(self) -> bool:
        return self.at is not None


class Load(NamedTuple):
    """What a worker reports with its heartbeat."""

    running: int
    draining: bool
    # As the worker knows it, in case its row was deleted.
    drain: Drain = Drain()


class Beat(NamedTuple):
    """The database's response to a worker's heartbeat."""

    is_current: bool
    dead: list[UUID]
    peers: list[UUID]
    # The database's time, in seconds since the epoch.
    now: float
    # Whether other workers may be unable to connect.
    is_full: bool
    # Whether it is the first of the workers that serve the same jobs, drained ones included.
    is_first: bool
    drain: Drain


def register(worker: Registration) -> Statement[list[UUID]]:
    return Statement(load("workers/register"), tuple(worker), ids)


def beat(
    worker: Registration, load_now: Load, *, dead_after: float, channel: str
) -> Statement[Beat]:
    running, draining, drain = load_now
    args = (*worker, running, draining, dead_after, channel, *drain)
    return Statement(load("workers/beat"), args, _beat)


def leave(worker: Registration) -> Statement[list[UUID]]:
    return Statement(load("workers/leave"), (worker.id, worker.incarnation), ids)


def bury(workers: Sequence[UUID], silent_for: float) -> Statement[list[UUID]]:
    return Statement(load("workers/bury"), (workers, silent_for), ids)


def first(dead_after: float) -> Statement[list[UUID]]:
    return Statement(load("workers/first"), (dead_after,), ids)


def listed(worker: UUID | None = None) -> Statement[Rows]:
    return Statement(load("workers/list"), (worker,), rows)


def totals(dead_after: float) -> Statement[Row]:
    """Count workers by state, and the slots of live ones."""
    return Statement(load("workers/totals"), (dead_after,), only)


def current_work(workers: Sequence[UUID], limit: int) -> Statement[Rows]:
    return Statement(load("workers/current_work"), (workers, limit), rows)


def set_drained(
    workers: Sequence[UUID] | None, is_drained: bool, actor: str | None, reason: str | None
) -> Statement[list[UUID]]:
    """Drain or resume workers, all of them for None, and return those that changed."""
    return Statement(load("workers/set_drained"), (workers, is_drained, actor, reason), ids)


def _beat(found: Rows) -> Beat:
    row = found[0]
    return Beat(
        row["is_current"],
        row["dead"],
        row["peers"],
        row["now"],
        row["is_full"],
        row["is_first"],
        Drain(row["drained_at"], row["drained_by"], row["drain_reason"]),
    )
