"""Statements on forge_workers, one function each."""

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from forge.store.statement import Rows, Statement, ids, load, rows


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


class Beat(NamedTuple):
    """The database's response to a worker's heartbeat."""

    is_current: bool
    dead: list[UUID]
    peers: list[UUID]
    # The database's time, in seconds since the epoch.
    now: float
    # Whether other workers may be unable to connect.
    is_full: bool


def register(worker: Registration) -> Statement[list[UUID]]:
    return Statement(load("workers/register"), tuple(worker), ids)


def beat(
    worker: Registration, *, running: int, draining: bool, dead_after: float, channel: str
) -> Statement[Beat]:
    args = (*worker, running, draining, dead_after, channel)
    return Statement(load("workers/beat"), args, _beat)


def leave(worker: Registration) -> Statement[list[UUID]]:
    return Statement(load("workers/leave"), (worker.id, worker.incarnation), ids)


def bury(workers: Sequence[UUID], silent_for: float) -> Statement[list[UUID]]:
    return Statement(load("workers/bury"), (workers, silent_for), ids)


def first(dead_after: float) -> Statement[list[UUID]]:
    return Statement(load("workers/first"), (dead_after,), ids)


def listed() -> Statement[Rows]:
    return Statement(load("workers/list"), (), rows)


def _beat(found: Rows) -> Beat:
    row = found[0]
    return Beat(
        row["is_current"],
        row["dead"],
        row["peers"],
        row["now"],
        row["is_full"],
    )
