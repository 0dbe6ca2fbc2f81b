"""Limits on connections: timeouts, header size and number of connections."""

import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from forge.config.server import ServerConfig
from forge.core.events import ClientDropped, Events

# File descriptors for everything but clients: database, listener, logs, the app's files.
RESERVED_DESCRIPTORS = 128
MAX_CONNECTIONS = 65_536
# Bytes per second: clients that send or read faster than this do not time out.
MIN_RATE = 16_384
# Seconds between two reports with the same reason; each has the number of connections.
REPORT_INTERVAL = 10.0
# Set in the state of a socket's scope once its client has authenticated.
AUTHENTICATED = "forge.authenticated"


class ConnectionLimits(NamedTuple):
    """Limits in seconds and bytes."""

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
    """Closes connections of one server that exceed a limit, and reports them."""

    def __init__(
        self, limits: ConnectionLimits, events: Events, allowed_origins: Sequence[str] = ()
    ) -> None:
        self.limits = limits
        self.allowed_origins = allowed_origins
        self._events = events
        self._unreported: dict[str, int] = {}
        self._reported_at: dict[str, float] = {}

    def sweep(self, connections: Iterable[object]) -> None:
        """Close connections that have timed out, and emit pending reports."""
        now = time.monotonic()
        for connection in list(connections):
            if isinstance(connection, Guarded):
                connection.check(now)
        for reason in [r for r, count in self._unreported.items() if count]:
            self._report(reason, None, now)

    def make_room(self, connections: Iterable[object], newest: "Guarded") -> bool:
        """Close the connection that has waited longest for its client; False if none waits."""
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
        self.dropped("max_connections reached; this connection was idle longest", longest.client)
        return True

    def dropped(self, reason: str, client: tuple[str, int] | None) -> None:
        """Report a closed connection."""
        self._unreported[reason] = self._unreported.get(reason, 0) + 1
        self._report(reason, client, time.monotonic())

    def _report(self, reason: str, client: tuple[str, int] | None, now: float) -> None:
        if now - self._reported_at.get(reason, float("-inf")) >= REPORT_INTERVAL:
            self._reported_at[reason] = now
            count, self._unreported[reason] = self._unreported[reason], 0
            self._events.emit(ClientDropped(reason, client[0] if client else None, count))


class Guarded(ABC):
    """The interface that guarded protocols add to uvicorn's."""

    transport: Any
    client: tuple[str, int] | None

    @abstractmethod
    def waits_since(self) -> float | None:
        """Return since when it has waited for its client; None while it handles a request."""

    @abstractmethod
    def check(self, now: float) -> None:
        """Close the connection if its client has timed out."""


def _open_files_left() -> int:
    """Return the number of connections that the limit of open files allows."""
    if sys.platform == "win32":
        return MAX_CONNECTIONS
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return MAX_CONNECTIONS
    return max(1, min(soft - RESERVED_DESCRIPTORS, MAX_CONNECTIONS))
