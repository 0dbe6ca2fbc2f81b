"""Watches the connections of one process: those that died in silence are ended at once.

When one of them learns that the server does not answer, or a statement takes long, a fresh
connection asks the server about all of them. What the server no longer knows, or does not work on
though we wait for it, is ended: its user gets an error, and no later user gets the connection.
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
from forge.core.event import Events
from forge.core.liveness import Session, is_lost
from forge.store.connecting import socket_of
from forge.store.fault import DRIVER_ERRORS
from forge.store.statement import load

if TYPE_CHECKING:
    from forge.store.link import Link

# Seconds between two looks at what is under way, all of which cost nothing but this process's time.
APART = 1.0
# A statement that takes so long makes the server worth asking; after a silence, so long.
SUSPECT = 3.0
SUSPECT_AFTER_SILENCE = 1.5
# How long after a silence statements are suspected sooner.
ALERT_FOR = 30.0
# How long a fresh connection may take to answer, and how long an idle one to prove that it lives:
# whoever wants to use that one waits as long, and to replace it costs little.
ANSWER = 3.0
PROOF = 1.0
# Behind a pooler the server cannot be asked about a connection: it counts as lost after so long, if
# another one is answered.
SUSPECT_BEHIND_POOLER = 5.0


class Reached(Protocol):
    """What a monitor needs of a database."""

    pooler: bool
    events: Events

    async def connect(self, *, planned: bool = True) -> "asyncpg.Connection[Any]":
        """Open a connection."""


class Suspect(NamedTuple):
    """A connection, since when it is open, and for how long it waits for an answer."""

    connection: "asyncpg.Connection[Any]"
    age: float
    waits: float | None
    end: Callable[[], None]


class Monitor:
    """Looks after the links and the handlers' connections of one event loop."""

    def __init__(self, database: Reached) -> None:
        self._database = database
        self._links: WeakSet[Link] = WeakSet()
        self._handlers: WeakKeyDictionary[asyncpg.Connection[Any], float] = WeakKeyDictionary()
        # When a connection that was found alive is next worth a question.
        self._not_before: WeakKeyDictionary[asyncpg.Connection[Any], float] = WeakKeyDictionary()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._examining: asyncio.Task[None] | None = None
        self._silent_at = float("-inf")
        # Whether everything is to be asked about once the server answers, waiting or not.
        self._owes_check = False

    def add_link(self, link: "Link") -> None:
        self._links.add(link)

    def add_handlers(self, connection: "asyncpg.Connection[Any]") -> None:
        """Watch a connection that handlers will use."""
        self._handlers[connection] = time.monotonic()
        self.watch()

    def watch(self) -> None:
        """Look every second from now on, as long as a connection is open."""
        if self._timer is None:
            self._loop = asyncio.get_running_loop()
            self._timer = self._loop.call_later(APART, self._look)

    def silence(self) -> None:
        """The server did not answer, or answers again after it did not; from any thread."""
        self._silent_at = time.monotonic()
        self._owes_check = True
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._examine_soon)

    def is_silent(self) -> bool:
        """Whether the server did not answer lately."""
        return time.monotonic() - self._silent_at < ALERT_FOR

    async def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._examining is not None:
            self._examining.cancel()
            await asyncio.wait([self._examining])

    def _look(self) -> None:
        self._timer = None
        if self._owes_check or any(self._suspects()):
            self._examine_soon()
        if self._handlers or any(link.connection is not None for link in self._links):
            self.watch()

    def _examine_soon(self) -> None:
        if self._examining is None or self._examining.done():
            self._examining = asyncio.get_running_loop().create_task(self._examine())

    async def _examine(self) -> None:
        is_check, self._owes_check = self._owes_check, False
        try:
            silent, lost = await asyncio.gather(
                self._replace_idle() if is_check else _none(), self._end_lost(everyone=is_check)
            )
        except (*DRIVER_ERRORS, ForgeError):
            self._owes_check |= is_check  # until the server answers
            return
        if silent + lost:
            self._database.events.notice(
                "warning",
                "connections to the database were lost in silence",
                connections=silent + lost,
            )
        if lost and not is_check:
            self.silence()

    async def _replace_idle(self) -> int:
        """End what is idle and does not answer: whoever comes next gets a fresh connection."""
        for connection in list(self._handlers):
            if _is_idle(connection):
                connection.terminate()
        answers = await asyncio.gather(*(link.prove(PROOF) for link in list(self._links)))
        return answers.count(False)

    async def _end_lost(self, *, everyone: bool) -> int:
        """End what waits for an answer that will not come, and what the server does not know."""
        suspects = list(self._suspects(everyone=everyone))
        if not suspects:
            return 0
        known = await self._ask([each.connection.get_server_pid() for each in suspects])
        lost = [each for each in suspects if known is None or _is_lost(each, known)]
        now = time.monotonic()
        for each in suspects:
            # What the server works on is asked about again, less and less often.
            self._not_before[each.connection] = now + max(each.waits or 0, APART)
        for each in lost:
            each.end()
        return len(lost)

    def _suspects(self, *, everyone: bool = False) -> Iterator[Suspect]:
        """Return what has waited long for an answer; all that handlers use, if everyone is due."""
        now, long = time.monotonic(), self._long()
        for link in list(self._links):
            if (connection := link.connection) is not None:
                waits = link.waits or waiting_for(connection)
                if self._is_worth_asking(connection, waits, long, now):
                    yield Suspect(connection, now - link.opened_at, waits, link.drop)
        if self._database.pooler:
            return  # what handlers do there cannot be told from waiting
        for connection, opened_at in list(self._handlers.items()):
            if connection.is_closed():
                del self._handlers[connection]
                continue
            waits = waiting_for(connection)
            if everyone or self._is_worth_asking(connection, waits, long, now):
                yield Suspect(connection, now - opened_at, waits, connection.terminate)

    def _long(self) -> float:
        if self._database.pooler:
            return SUSPECT_BEHIND_POOLER if self.is_silent() else float("inf")
        return SUSPECT_AFTER_SILENCE if self.is_silent() else SUSPECT

    def _is_worth_asking(
        self, connection: "asyncpg.Connection[Any]", waits: float | None, long: float, now: float
    ) -> bool:
        return (waits or 0) >= long and now >= self._not_before.get(connection, 0)

    async def _ask(self, pids: list[int]) -> dict[int, Session] | None:
        """Ask the server about its sessions by a fresh connection; None where it cannot tell."""
        fresh = await self._database.connect(planned=False)
        try:
            if self._database.pooler:
                await fresh.fetch(load("server/answer"), timeout=ANSWER)
                return None
            found = await fresh.fetch(load("server/sessions"), pids, timeout=ANSWER)
        finally:
            fresh.terminate()
        return {row["pid"]: Session(row["pid"], row["age"], row["idle_for"]) for row in found}


async def _none() -> int:
    return 0


def _is_lost(suspect: Suspect, known: dict[int, Session]) -> bool:
    if suspect.connection.is_closed():
        return False
    return is_lost(suspect.age, suspect.waits, known.get(suspect.connection.get_server_pid()))


def _is_idle(connection: "asyncpg.Connection[Any]") -> bool:
    """Whether no handler holds a connection of their pool."""
    return not connection.is_closed() and getattr(connection, "_proxy", connection) is None


def waiting_for(connection: "asyncpg.Connection[Any]") -> float | None:
    """Return for how long something sent was not answered, in seconds, as the kernel knows it.

    None where nothing is awaited, or the kernel does not say: on a Unix socket, and beside Linux.
    """
    found = socket_of(connection)
    if found is None or found.family == socket.AF_UNIX or not hasattr(socket, "TCP_INFO"):
        return None
    told = found.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TOLD.size)
    if len(told) < _TOLD.size:
        return None
    sent_ago, received_ago = _TOLD.unpack(told)
    return sent_ago / 1000 if sent_ago < received_ago else None


# struct tcp_info: milliseconds since data was sent and since data was received.
_TOLD = struct.Struct("44xI4xI")
