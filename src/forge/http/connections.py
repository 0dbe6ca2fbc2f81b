"""Limits on connections: how long a client may take, how much it may send, how many there are."""

import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, NamedTuple

from forge.config_server import ServerConfig
from forge.core.event import ClientDropped, Events

# Descriptors that are not clients': the database, the listener, logs, what the app opens.
RESERVED = 128
MOST_CONNECTIONS = 65_536
# Bytes a second: a body that comes, or an answer that is read, faster than this is not cut off.
SLOWEST = 16_384
# One line for each reason in this many seconds, with how many connections it stands for.
REPORT = 10.0
# In the state of a socket's scope once its client has shown a token.
INTRODUCED = "forge.introduced"


class ConnectionLimits(NamedTuple):
    """The limits in seconds and bytes."""

    header_timeout: float
    body_timeout: float
    idle_timeout: float
    send_timeout: float
    max_header_bytes: int
    max_connections: int

    @classmethod
    def of(cls, config: ServerConfig) -> "ConnectionLimits":
        return cls(
            config.header_timeout.total_seconds(),
            config.body_timeout.total_seconds(),
            config.idle_timeout.total_seconds(),
            config.send_timeout.total_seconds(),
            config.max_header_bytes,
            config.max_connections or _open_files_left(),
        )


class Guard:
    """Watches the connections of one server, and reports those that it closed."""

    def __init__(self, limits: ConnectionLimits, events: Events) -> None:
        self.limits = limits
        self._events = events
        self._unreported: dict[str, int] = {}
        self._reported_at: dict[str, float] = {}

    def sweep(self, connections: Iterable[object]) -> None:
        """Close every connection whose client has taken too long, and report what is unreported."""
        now = time.monotonic()
        for connection in list(connections):
            if isinstance(connection, Guarded):
                connection.check(now)
        for reason in [r for r, count in self._unreported.items() if count]:
            self._report(reason, None, now)

    def make_room(self, connections: Iterable[object], newest: "Guarded") -> bool:
        """Close the connection that has waited longest for its client, if there is any."""
        waiting = [
            (since, connection)
            for connection in connections
            if isinstance(connection, Guarded)
            and connection is not newest
            and (since := connection.waits_since()) is not None
        ]
        if not waiting:
            return False
        _, longest = min(waiting, key=lambda found: found[0])
        longest.transport.abort()
        self.dropped("max_connections are open, and this one waited longest", longest.client)
        return True

    def dropped(self, reason: str, client: tuple[str, int] | None) -> None:
        """Report a connection that was closed."""
        self._unreported[reason] = self._unreported.get(reason, 0) + 1
        self._report(reason, client, time.monotonic())

    def _report(self, reason: str, client: tuple[str, int] | None, now: float) -> None:
        if now - self._reported_at.get(reason, float("-inf")) >= REPORT:
            self._reported_at[reason] = now
            count, self._unreported[reason] = self._unreported[reason], 0
            self._events.emit(ClientDropped(reason, client[0] if client else None, count))


class Guarded(ABC):
    """What a guarded protocol has beside uvicorn's own."""

    transport: Any
    client: tuple[str, int] | None

    @abstractmethod
    def waits_since(self) -> float | None:
        """Return since when it has only waited for its client; None while it serves it."""

    @abstractmethod
    def check(self, now: float) -> None:
        """Close the connection if its client has taken too long."""


def _open_files_left() -> int:
    """Return how many connections fit below the process's limit of open files."""
    if sys.platform == "win32":
        return MOST_CONNECTIONS
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return MOST_CONNECTIONS
    return max(1, min(soft - RESERVED, MOST_CONNECTIONS))
