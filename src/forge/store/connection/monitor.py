"""Detects and ends connections that died without an error, such as after a network failure.

When a connection times out, or a statement takes long, a fresh connection queries the server about
all of them. A connection whose session the server no longer has, or has as idle while we wait for
an answer, is ended: its user gets an error, and no later user gets the connection.
"""

import asyncio
import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol
from weakref import WeakKeyDictionary, WeakSet

import asyncpg

from forge.core.errors import ForgeError
from forge.core.events import Events
from forge.store.connection.driver_errors import DRIVER_ERRORS
from forge.store.connection.opening import socket_of
from forge.store.statement import load

if TYPE_CHECKING:
    from forge.store.connection.link import Link

# How far the two sides may disagree on when a session began, in seconds.
LEEWAY = 10.0
# An answer that the server sent this many seconds ago has arrived, or never will.
ARRIVED = 1.5


class BackendSession(NamedTuple):
    """A session as the server sees it; times are seconds, None where it does not say."""

    pid: int
    age: float | None
    idle_for: float | None


def is_lost(age: float, waits: float | None, seen: BackendSession | None) -> bool:
    """Whether a connection of this age, which has waited this long for an answer, is dead.

    The server may have no such session, as after a failover, or may have one that is idle: then the
    statement or its answer was lost on the way, as behind a firewall that forgot the connection.
    """
    if seen is None or (seen.age is not None and abs(seen.age - age) > LEEWAY):
        return True
    if waits is None or seen.idle_for is None:
        return False
    return min(waits, seen.idle_for) >= ARRIVED


# Seconds between two local checks of statements in progress; these send nothing to the server.
CHECK_INTERVAL = 1.0
# Seconds after which a statement in progress is suspect; fewer after the server did not answer.
SUSPECT_AFTER = 3.0
SUSPECT_AFTER_TIMEOUT = 1.5
# Seconds for which the shorter limit applies.
ALERT_SECONDS = 30.0
# Seconds for a fresh connection to answer, and for an idle one to answer a probe. The latter is
# short: callers wait for the probe, and replacing the connection is cheap.
ANSWER_TIMEOUT = 3.0
PROBE_TIMEOUT = 1.0
# Behind a pooler the server cannot be queried about a connection: after this many seconds it counts
# as lost if another connection gets an answer.
SUSPECT_BEHIND_POOLER = 5.0


class MonitoredDatabase(Protocol):
    """The part of Database that the monitor uses."""

    pooler: bool
    events: Events

    async def connect(self, *, planned: bool = True) -> "asyncpg.Connection[Any]":
        """Open a connection."""


class Suspect(NamedTuple):
    """A connection, its age, and how long it has been waiting for an answer."""

    connection: "asyncpg.Connection[Any]"
    age: float
    waits: float | None
    end: Callable[[], None]


class Monitor:
    """Monitors the links and the handlers' connections of one event loop."""

    def __init__(self, database: MonitoredDatabase) -> None:
        self._database = database
        self._links: WeakSet[Link] = WeakSet()
        self._handlers: WeakKeyDictionary[asyncpg.Connection[Any], float] = WeakKeyDictionary()
        # When to query next about a connection that was found alive.
        self._not_before: WeakKeyDictionary[asyncpg.Connection[Any], float] = WeakKeyDictionary()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._examining: asyncio.Task[None] | None = None
        self._silent_at = float("-inf")
        # Whether to query about every connection, waiting or not, once the server answers.
        self._check_is_due = False

    def add_link(self, link: "Link") -> None:
        self._links.add(link)

    def add_handlers(self, connection: "asyncpg.Connection[Any]") -> None:
        """Watch a connection that handlers will use."""
        self._handlers[connection] = time.monotonic()
        self.watch()

    def watch(self) -> None:
        """Check every second from now on, as long as a connection is open."""
        if self._timer is None:
            self._loop = asyncio.get_running_loop()
            self._timer = self._loop.call_later(CHECK_INTERVAL, self._look)

    def silence(self) -> None:
        """Note that the server stopped answering, or answers again; callable from any thread."""
        self._silent_at = time.monotonic()
        self._check_is_due = True
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._examine_soon)

    def is_silent(self) -> bool:
        """Whether the server recently failed to answer."""
        return time.monotonic() - self._silent_at < ALERT_SECONDS

    async def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._examining is not None:
            self._examining.cancel()
            await asyncio.wait([self._examining])

    def _look(self) -> None:
        self._timer = None
        if self._check_is_due or any(self._suspects()):
            self._examine_soon()
        if self._handlers or any(link.connection is not None for link in self._links):
            self.watch()

    def _examine_soon(self) -> None:
        if self._examining is None or self._examining.done():
            self._examining = asyncio.get_running_loop().create_task(self._examine())

    async def _examine(self) -> None:
        is_check, self._check_is_due = self._check_is_due, False
        try:
            silent, lost = await asyncio.gather(
                self._replace_idle() if is_check else _none(), self._end_lost(everyone=is_check)
            )
        except (*DRIVER_ERRORS, ForgeError):
            self._check_is_due |= is_check  # until the server answers
            return
        if silent + lost:
            self._database.events.notice(
                "warning",
                "database connections died without an error",
                connections=silent + lost,
            )
        if lost and not is_check:
            self.silence()

    async def _replace_idle(self) -> int:
        """End idle connections that do not answer; their next user gets a fresh one."""
        for connection in list(self._handlers):
            if _is_idle(connection):
                connection.terminate()
        answers = await asyncio.gather(*(link.probe(PROBE_TIMEOUT) for link in list(self._links)))
        return answers.count(False)

    async def _end_lost(self, *, everyone: bool) -> int:
        """End connections whose answer will not come or whose session the server no longer has."""
        suspects = list(self._suspects(everyone=everyone))
        if not suspects:
            return 0
        known = await self._sessions([each.connection.get_server_pid() for each in suspects])
        lost = [each for each in suspects if known is None or _is_lost(each, known)]
        now = time.monotonic()
        for each in suspects:
            # Query again about long-running statements, at growing intervals.
            self._not_before[each.connection] = now + max(each.waits or 0, CHECK_INTERVAL)
        for each in lost:
            each.end()
        return len(lost)

    def _suspects(self, *, everyone: bool = False) -> Iterator[Suspect]:
        """Yield connections that have waited long; with `everyone` all that handlers use."""
        now, long = time.monotonic(), self._suspect_after()
        for link in list(self._links):
            if (connection := link.connection) is not None:
                waits = link.waits or waiting_for(connection)
                if self._is_due(connection, waits, long, now):
                    yield Suspect(connection, now - link.opened_at, waits, link.drop)
        if self._database.pooler:
            return  # waiting cannot be distinguished from work there
        for connection, opened_at in list(self._handlers.items()):
            if connection.is_closed():
                del self._handlers[connection]
                continue
            waits = waiting_for(connection)
            if everyone or self._is_due(connection, waits, long, now):
                yield Suspect(connection, now - opened_at, waits, connection.terminate)

    def _suspect_after(self) -> float:
        if self._database.pooler:
            return SUSPECT_BEHIND_POOLER if self.is_silent() else float("inf")
        return SUSPECT_AFTER_TIMEOUT if self.is_silent() else SUSPECT_AFTER

    def _is_due(
        self, connection: "asyncpg.Connection[Any]", waits: float | None, long: float, now: float
    ) -> bool:
        return (waits or 0) >= long and now >= self._not_before.get(connection, 0)

    async def _sessions(self, pids: list[int]) -> dict[int, BackendSession] | None:
        """Query the server's sessions over a fresh connection; None behind a pooler."""
        fresh = await self._database.connect(planned=False)
        try:
            if self._database.pooler:
                await fresh.fetch(load("server/answer"), timeout=ANSWER_TIMEOUT)
                return None
            found = await fresh.fetch(load("server/sessions"), pids, timeout=ANSWER_TIMEOUT)
        finally:
            fresh.terminate()
        return {
            row["pid"]: BackendSession(row["pid"], row["age"], row["idle_for"]) for row in found
        }


async def _none() -> int:
    return 0


def _is_lost(suspect: Suspect, known: dict[int, BackendSession]) -> bool:
    if suspect.connection.is_closed():
        return False
    return is_lost(suspect.age, suspect.waits, known.get(suspect.connection.get_server_pid()))


def _is_idle(connection: "asyncpg.Connection[Any]") -> bool:
    """Whether a connection of the handlers' pool is not in use."""
    return not connection.is_closed() and getattr(connection, "_proxy", connection) is None


def waiting_for(connection: "asyncpg.Connection[Any]") -> float | None:
    """Return the seconds since data was sent that is not answered yet, from the kernel.

    None if no answer is pending, on a Unix socket, and on systems without TCP_INFO.
    """
    found = socket_of(connection)
    if found is None or found.family == socket.AF_UNIX or not hasattr(socket, "TCP_INFO"):
        return None
    info = found.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO.size)
    if len(info) < _TCP_INFO.size:
        return None
    sent_ago, received_ago = _TCP_INFO.unpack(info)
    return sent_ago / 1000 if sent_ago < received_ago else None


# struct tcp_info: milliseconds since data was sent and since data was received.
_TCP_INFO = struct.Struct("44xI4xI")
