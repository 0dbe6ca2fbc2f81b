"""How the queue stands: figures that cost the same however many jobs there are."""

from typing import NamedTuple

from forge.store.statement import Rows, Statement, load, rows


class Crew(NamedTuple):
    """Living workers with the same capabilities and queues."""

    capabilities: list[str]
    queues: list[str] | None
    workers: int
    running: int
    slots: int


def depth(most: int) -> Statement[Rows]:
    return Statement(load("jobs/depth"), (most,), rows)


def dead_letters() -> Statement[Rows]:
    return Statement(load("dead_letters/waiting"), (), rows)


def oldest_snapshots() -> Statement[Rows]:
    return Statement(load("doctor/oldest_snapshots"), (), rows)


def crews(dead_after: float) -> Statement[list[Crew]]:
    return Statement(
        load("workers/crews"), (dead_after,), lambda found: [Crew(*row.values()) for row in found]
    )
