"""Writes in batches, fenced by the lease, repeated until the database has answered."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from uuid import UUID

from forge.core.errors import DatabaseUnavailable, SchemaMissing, StatementRefused
from forge.core.events import AttemptRefused, Events
from forge.store.connection.link import Link
from forge.store.connection.waiting import Backoff
from forge.store.statement import Statement
from forge.worker.loops import WorkSignals

if TYPE_CHECKING:
    from forge.worker.held_work import HeldWork

T = TypeVar("T")
# Seconds until a write that failed unexpectedly is tried again.
RETRY_PAUSE = 1.0
# Seconds until an entry that the database refused for a reason of its own is sent again.
REFUSAL_PAUSE = 5.0


class WriteKind:
    """Entries of one kind that wait to be written, and the statement that writes them."""

    def __init__(
        self,
        act: str,
        statement: Callable[[list[Any]], Statement[list[UUID]]],
        *,
        is_end: bool = True,
        checks_row: bool = False,
    ) -> None:
        self.act = act
        self.statement = statement
        # Whether its entries are the ends of attempts, which must not be lost.
        self.is_end = is_end
        # Whether another writer may have written an entry before: then its row decides.
        self.checks_row = checks_row
        # Always the same list, so that other code may keep a reference to it.
        self.waiting: list[Any] = []

    def take(self, most: int) -> list[Any]:
        """Take out what the next statement writes; ends are limited to the size of a batch."""
        taken = self.waiting[:most] if self.is_end else self.waiting[:]
        del self.waiting[: len(taken)]
        return taken


class BatchAcker(ABC):
    """Writes all entries that arrived since its last write, at once when it is idle."""

    # Entries per statement: larger statements hold locks longer and gain nothing.
    batch_size = 1000
    # What it writes, for the log.
    subject = "acks"

    def __init__(
        self,
        links: Sequence[Link],
        held: "HeldWork",
        signals: WorkSignals,
        events: Events,
        kinds: Sequence[WriteKind],
        independent: WriteKind | None = None,
    ) -> None:
        """`kinds` are written in this order, except that entries of the `independent` kind need no
        order among themselves: each batch of them takes the next idle link."""
        self._idle = list(links)
        self._flights: set[asyncio.Task[None]] = set()
        self._held = held
        self._signals = signals
        self._events = events
        self._kinds = kinds
        self._ends = [kind for kind in kinds if kind.is_end]
        self._independent = independent
        self._ordered = [kind for kind in kinds if kind is not independent]
        self._work = asyncio.Event()
        self._writing = 0
        self._postponed = 0
        # Whether a write failed unexpectedly: it may be in the database.
        self._has_failed = False

    @property
    def unwritten(self) -> int:
        """How many ends of attempts are not in the database yet."""
        count = self._writing + self._postponed
        for kind in self._ends:  # asked before each claim, where a sum would cost twice as much
            count += len(kind.waiting)
        return count

    async def run(self, stop: asyncio.Event) -> None:
        """Write until stopped and nothing is left."""
        while not stop.is_set() or self.unwritten:
            await self._work.wait()
            self._work.clear()
            while True:
                if _is_any_waiting(self._ordered):
                    await self._land()
                    await self._flush()
                elif self._independent is not None and self._independent.waiting:
                    await self._fly(self._independent)
                else:
                    break
        await self._land()

    def wake(self) -> None:
        self._work.set()

    @abstractmethod
    def add(self, end: Any) -> None:
        """Add the end of an attempt to what is written next."""

    @abstractmethod
    async def _written_before(self, link: Link, missed: list[Any], act: str) -> set[UUID]:
        """Return the entries that are in the database although their write changed no row.

        Their first try was committed and its answer lost; the others came too late.
        """

    @abstractmethod
    def _storable(self, end: Any, reason: str) -> Any | None:
        """Return what to write instead of an end that the database will never accept."""

    @abstractmethod
    def _report(self, kind: WriteKind, entries: list[Any], refused: list[Any]) -> None:
        """Report the entries of one statement, `refused` being those that came too late."""

    async def _fly(self, kind: WriteKind) -> None:
        """Send a batch as soon as a link is idle."""
        if not self._idle:
            await asyncio.wait(self._flights, return_when=asyncio.FIRST_COMPLETED)
            return
        taken = kind.take(self.batch_size)
        self._writing += len(taken)
        flight = asyncio.ensure_future(self._write_one_kind(self._idle.pop(), kind, taken))
        self._flights.add(flight)
        flight.add_done_callback(self._flights.discard)

    async def _land(self) -> None:
        """Wait until every batch under way is written."""
        while self._flights:
            await asyncio.wait(self._flights)

    async def _write_one_kind(self, link: Link, kind: WriteKind, taken: list[Any]) -> None:
        try:
            await self._write(link, kind, taken)
            self._signals.room_changed.set()
        except Exception as error:
            await self._failed(error)
            kind.waiting[:0] = taken
        finally:
            self._idle.append(link)
            self._writing -= len(taken)
            self._work.set()

    async def _flush(self) -> None:
        """Write a batch of each kind, in their order."""
        batches = [(kind, kind.take(self.batch_size)) for kind in self._kinds]
        ends = sum(len(taken) for kind, taken in batches if kind.is_end)
        self._writing += ends
        link = self._idle[0]
        try:
            for kind, taken in batches:
                if taken:
                    await self._write(link, kind, taken)
            self._signals.room_changed.set()
        except Exception as error:
            await self._failed(error)
            for kind, taken in batches:
                kind.waiting[:0] = taken
        finally:
            self._writing -= ends

    async def _failed(self, error: Exception) -> None:
        """Report that a write failed unexpectedly; its entries are written again."""
        self._events.notice("error", f"{self.subject} failed, retrying", error=repr(error))
        self._has_failed = True
        await asyncio.sleep(RETRY_PAUSE)

    async def _write(self, link: Link, kind: WriteKind, entries: list[Any]) -> None:
        try:
            accepted, is_again = await retry_write(
                link, self._events, lambda: kind.statement(entries)
            )
            is_again |= self._has_failed
        except StatementRefused as error:
            await self._write_apart(link, kind, entries, error)
            return
        refused: list[Any] = []
        if len(accepted) < len(entries):
            refused = await self._account_for(link, set(accepted), kind, entries, is_again)
        self._report(kind, entries, refused)

    async def _write_apart(
        self, link: Link, kind: WriteKind, entries: list[Any], error: StatementRefused
    ) -> None:
        """Write entries one by one, so that one refused entry does not hold up the others."""
        if len(entries) > 1:
            for entry in entries:
                await self._write(link, kind, [entry])
            return
        entry, reason = entries[0], _first_line(error)
        self._events.notice("error", f"{kind.act} was refused", job_id=str(entry.id), error=reason)
        if not kind.is_end:
            return
        storable = self._storable(entry, reason) if error.blames_value else None
        if storable is not None:
            self.add(storable)
        else:
            # If it were dropped, the reconciler would release the job, and its handler would run
            # again and again. A withdrawn grant, for example, may be granted again.
            self._send_later(entry)

    def _send_later(self, end: Any) -> None:
        def send() -> None:
            self._postponed -= 1
            self.add(end)

        self._postponed += 1
        asyncio.get_running_loop().call_later(REFUSAL_PAUSE, send)

    async def _account_for(
        self, link: Link, accepted: set[UUID], kind: WriteKind, entries: list[Any], is_again: bool
    ) -> list[Any]:
        """Report the entries that came too late, and return them."""
        missed = [entry for entry in entries if entry.id not in accepted]
        written: set[UUID] = set()
        if is_again or kind.checks_row:
            written = await self._written_before(link, missed, kind.act)
        refused = [entry for entry in missed if entry.id not in written]
        for entry in refused:
            self._events.emit(AttemptRefused(entry.id, entry.lease, kind.act))
            self._held.let_go(entry.id, entry.lease)
        return refused


def _is_any_waiting(kinds: Sequence[WriteKind]) -> bool:
    for kind in kinds:  # noqa: SIM110 - asked for every batch
        if kind.waiting:
            return True
    return False


class Runs(Protocol):
    """Runs statements."""

    async def run(self, statement: Statement[T]) -> T:
        """Run one statement."""


async def retry_write(
    link: Runs, events: Events, statement: Callable[[], Statement[T]]
) -> tuple[T, bool]:
    """Run a statement until the database answers; return also whether that took several tries."""
    backoff = Backoff(first=0.05)
    is_again = False
    while True:
        try:
            return await link.run(statement()), is_again
        except (DatabaseUnavailable, SchemaMissing) as error:
            events.notice("warning", "acks wait for the database", error=str(error))
            await asyncio.sleep(backoff.next())
            is_again = True


def _first_line(error: StatementRefused) -> str:
    """Return the first line: the server's details may quote the whole row."""
    return str(error).partition("\n")[0]
