"""Whether a connection died in silence: what this side knows, and what the server says."""

from typing import NamedTuple

# How far the two sides may disagree on when a session began, in seconds.
LEEWAY = 10.0
# An answer that the server sent so many seconds ago has arrived, or never will.
ARRIVED = 1.5


class Session(NamedTuple):
    """A session as the server sees it; times are seconds, None where it does not say."""

    pid: int
    age: float | None
    idle_for: float | None


def is_lost(age: float, waits: float | None, seen: Session | None) -> bool:
    """Whether a connection of this age, which waits so long for an answer, leads nowhere.

    The server may have no such session, as after a failover, or may have one that is idle: then the
    statement or its answer was lost on the way, as behind a firewall that forgot the connection.
    """
    if seen is None or (seen.age is not None and abs(seen.age - age) > LEEWAY):
        return True
    if waits is None or seen.idle_for is None:
        return False
    return min(waits, seen.idle_for) >= ARRIVED
