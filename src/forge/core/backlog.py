"""Jobs that wait and run now, by type, queue and capability."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

# Jobs of one lane that are counted; a lane has one priority.
COUNTED_PER_LANE = 1000


class BacklogKey(NamedTuple):
    """What a worker has to serve to claim these jobs."""

    job_type: str
    queue: str
    worker_capability: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BacklogItem:
    """The jobs of one type, queue and capability that are due or held by a worker."""

    job_type: str
    queue: str
    worker_capability: str | None
    # Jobs that are due and wait; there may be more if this is not exact.
    ready: int = 0
    is_exact: bool = True
    # For how long the oldest of them has been due.
    oldest_seconds: float | None = None
    # Jobs that workers run or have fetched.
    running: int = 0


def backlog(
    lanes: Iterable[Mapping[str, Any]], owned: Iterable[Mapping[str, Any]]
) -> list[BacklogItem]:
    """Add up lanes of all priorities and what workers hold, in the order of the names."""
    figures: dict[BacklogKey, dict[str, Any]] = {}
    for lane in lanes:
        found = figures.setdefault(_key(lane), {})
        found["ready"] = found.get("ready", 0) + lane["count"]
        found["is_exact"] = found.get("is_exact", True) and lane["count"] < COUNTED_PER_LANE
        found["oldest_seconds"] = max(found.get("oldest_seconds", 0.0), lane["oldest"])
    for held in owned:
        figures.setdefault(_key(held), {})["running"] = held["count"]
    by_name = sorted(figures, key=lambda key: (key[0], key[1], key[2] or ""))
    return [BacklogItem(**key._asdict(), **figures[key]) for key in by_name]


def _key(row: Mapping[str, Any]) -> BacklogKey:
    return BacklogKey(row["job_type"], row["queue"], row["worker_capability"])
