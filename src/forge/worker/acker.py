"""Acks: what attempts came to, written in batches, each fenced by its lease."""

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import UUID

from forge.core.errors import StatementRefused
from forge.core.event import AttemptEnded, AttemptRefused, Events
from forge.core.job import Job
from forge.core.lifecycle import Status
from forge.core.outcome import Ack, Completion, Failure, Policy, Raised, Settlement, settle
from forge.core.run import Run
from forge.store import jobs
from forge.store.jobs import Note
from forge.store.link import Link
from forge.store.statement import Row, Statement
from forge.worker.insist import insist
from forge.worker.stopped import StoppedAttempts

Make = Callable[[list[Any]], Statement[list[UUID]]]
# How many seconds pass before a write that failed unexpectedly is tried again.
PAUSE = 1.0
# One statement's worth: larger ones hold locks longer and gain nothing.
MOST_AT_ONCE = 1000
# Seconds until an ack is sent again that the database refused for a reason of its own.
PUT_OFF = 5.0


class Acker:
    """Writes whatever came in since its last write, at once when it is idle."""

    def __init__(
        self,
        links: Sequence[Link],
        events: Events,
        changed: Callable[[Sequence[UUID]], None],
        policies: Mapping[str, Policy],
        stopped: StoppedAttempts,
    ) -> None:
        # More than one, so that the next completions need not wait for the disk to have these.
        self._idle = list(links)
        self._flights: set[asyncio.Task[None]] = set()
        self._events = events
        self._changed = changed
        self._policies = policies
        self._stopped = stopped
        self._starts: list[Job] = []
        self._notes: list[Note] = []
        self._completions: list[Completion] = []
        self._settlements: list[Settlement] = []
        # Ends that are told of when they are written, by id and lease.
        self._ends: dict[tuple[UUID, int], AttemptEnded] = {}
        self._work = asyncio.Event()
        self._writing = 0
        # Whether a write failed in a way that was not foreseen: it may be in the database.
        self._has_failed = False
        self._put_off = 0
        self.refused: Callable[[UUID, int], None] = lambda job_id, lease: None
        self.written: Callable[[], None] = lambda: None

    @property
    def unwritten(self) -> int:
        """How many ends of attempts are not in the database yet."""
        return len(self._completions) + len(self._settlements) + self._writing + self._put_off

    def start(self, job: Job) -> None:
        """A job that waited in this worker has begun."""
        self._starts.append(job)
        self._work.set()

    def ack(self, ack: Ack, last_note: Note | None) -> None:
        """An attempt has ended; what it noted last is written with it."""
        if last_note is not None:
            self._notes.append(last_note)
        if isinstance(ack, Completion):
            self._completions.append(ack)
        else:
            self._settlements.append(ack)
        self._work.set()

    def tell_when_written(self, ended: AttemptEnded) -> None:
        """Emit the end of an attempt, acked just now, when the database has it."""
        self._ends[ended.job.id, ended.job.lease] = ended

    def written_elsewhere(self, job: Job) -> None:
        """A handler has written the end of its attempt in a transaction of its own."""
        if not isinstance(job, Run):
            self._changed([job.id])

    async def run(self, stop: asyncio.Event) -> None:
        """Write until told to stop and nothing is left."""
        while not stop.is_set() or self.unwritten:
            await self._work.wait()
            self._work.clear()
            while self._starts or self._completions or self._settlements:
                if self._is_plain:
                    await self._fly()
                else:
                    await self._land()
                    await self._flush()
        await self._land()

    def wake(self) -> None:
        self._work.set()

    @property
    def _is_plain(self) -> bool:
        """Whether there are completions alone, which need not keep an order among themselves."""
        return not (self._starts or self._notes or self._settlements)

    async def _fly(self) -> None:
        """Send completions on their way as soon as there is a link for them."""
        if not self._idle:
            await asyncio.wait(self._flights, return_when=asyncio.FIRST_COMPLETED)
            return
        done, self._completions = _split(self._completions)
        self._writing += len(done)
        flight = asyncio.ensure_future(self._complete(self._idle.pop(), done))
        self._flights.add(flight)
        flight.add_done_callback(self._flights.discard)

    async def _land(self) -> None:
        """Wait until everything that is on its way has arrived."""
        while self._flights:
            await asyncio.wait(self._flights)

    async def _complete(self, link: Link, done: list[Completion]) -> None:
        try:
            await self._write(link, jobs.complete, done, "complete")
            self._tell(done)
        except Exception as error:
            await self._failed(error)
            self._completions[:0] = done
        finally:
            self._idle.append(link)
            self._writing -= len(done)
            self._work.set()

    async def _flush(self) -> None:
        """Write everything in its order: what began, how far it came, how it ended."""
        starts, self._starts = self._starts, []
        notes, self._notes = self._notes, []
        done, self._completions = _split(self._completions)
        ended, self._settlements = _split(self._settlements)
        self._writing += len(done) + len(ended)
        link = self._idle[0]
        try:
            if starts:
                await self._write(link, jobs.start, starts, "start")
            if notes:
                await self._write(link, jobs.note, notes, "note")
            if done:
                await self._write(link, jobs.complete, done, "complete")
            if ended:
                await self._write(link, jobs.settle, ended, "settle")
            self._tell([*done, *ended])
        except Exception as error:
            await self._failed(error)
            self._starts[:0], self._notes[:0] = starts, notes
            self._completions[:0], self._settlements[:0] = done, ended
        finally:
            self._writing -= len(done) + len(ended)

    async def _failed(self, error: Exception) -> None:
        """Say that a write failed in a way that was not foreseen; what it held is written again."""
        self._events.notice("error", "acks failed and are tried again", error=repr(error))
        self._has_failed = True
        await asyncio.sleep(PAUSE)

    def _tell(self, written: Sequence[Ack]) -> None:
        self.written()
        if written:
            self._changed([ack.id for ack in written])

    async def _write(self, link: Link, statement: Make, entries: list[Any], act: str) -> None:
        try:
            accepted, is_again = await insist(link, self._events, lambda: statement(entries))
            is_again |= self._has_failed
        except StatementRefused as error:
            await self._write_apart(link, statement, entries, act, error)
            return
        refused: list[Any] = []
        if len(accepted) < len(entries):
            refused = await self._account_for(link, set(accepted), entries, act, is_again)
        if act == "settle" and self._ends:
            self._tell_ends(entries, refused)

    async def _write_apart(
        self,
        link: Link,
        statement: Make,
        entries: list[Any],
        act: str,
        error: StatementRefused,
    ) -> None:
        """Let one entry that the database cannot take not hold up the others."""
        if len(entries) > 1:
            for entry in entries:
                await self._write(link, statement, [entry], act)
            return
        entry, reason = entries[0], _reason(error)
        self._events.notice("error", f"{act} was refused", job_id=str(entry.id), error=reason)
        if not error.blames_value:
            self._send_later(entry)
        elif isinstance(entry, Completion) and entry.job is not None:
            self.ack(self._unstorable(entry.job, reason), None)
        elif isinstance(entry, Settlement) and entry.trace is not None:
            self._settlements.append(_plain(entry, reason))
        else:
            # Dropped, it would be given back with its attempt, and its handler run for ever.
            self._send_later(entry)

    def _unstorable(self, job: Job, reason: str) -> Ack:
        """Decide what becomes of a job whose output the database will never take."""
        failure = Failure("forge.UnstorableOutput", f"the output cannot be stored: {reason}", "")
        return settle(job, Raised(failure), self._policies[job.type], random.random())

    def _send_later(self, entry: Any) -> None:
        """Keep what an attempt came to: a withdrawn grant, for example, may be given again."""
        if not isinstance(entry, Completion | Settlement):
            return

        def send() -> None:
            self._put_off -= 1
            self.ack(entry, None)

        self._put_off += 1
        asyncio.get_running_loop().call_later(PUT_OFF, send)

    def _tell_ends(self, written: list[Any], refused: list[Any]) -> None:
        for entry in written:
            ended = self._ends.pop((entry.id, entry.lease), None)
            if ended is not None:
                if entry in refused:
                    self._stopped.add(ended.job, ended.seconds)
                else:
                    self._events.emit(ended)

    async def _account_for(
        self, link: Link, accepted: set[UUID], entries: list[Any], act: str, is_again: bool
    ) -> list[Any]:
        """Report the entries that came too late, and return them."""
        missed = [entry for entry in entries if entry.id not in accepted]
        done_before: set[UUID] = set()
        # A handler that completes in a transaction of its own writes its start there, too.
        if is_again or act == "start":
            done_before = await self._written_before(link, missed, act)
        refused = [entry for entry in missed if entry.id not in done_before]
        for entry in refused:
            self._events.emit(AttemptRefused(entry.id, entry.lease, act))
            self.refused(entry.id, entry.lease)
        return refused

    async def _written_before(self, link: Link, missed: list[Any], act: str) -> set[UUID]:
        """Tell acks whose first try was committed, its answer lost, from those that came late."""
        attempts = [(entry.id, entry.lease) for entry in missed]
        found, _ = await insist(link, self._events, lambda: jobs.standing(attempts))
        stands = {row["id"]: row for row in found}
        return {e.id for e in missed if e.id in stands and _is_written(e, act, stands[e.id])}


def _is_written(entry: Any, act: str, row: Row) -> bool:
    if isinstance(entry, Settlement) and entry.outcome is not None:
        # The record stays also when the job has long been claimed again.
        return bool(row["outcome"] == entry.outcome)
    return row["lease"] == entry.lease and row["status"] in _statuses_after(entry, act)


def _statuses_after(entry: Any, act: str) -> tuple[str, ...]:
    if isinstance(entry, Settlement):
        return (entry.status,)
    if act == "start":
        return Status.RUNNING, Status.COMPLETED
    return (Status.COMPLETED if act == "complete" else Status.RUNNING,)


def _plain(settlement: Settlement, reason: str) -> Settlement:
    """Leave out what came from the handler."""
    return settlement._replace(
        exception=None, trace=None, place=None, message=f"unstorable: {reason}"[:500]
    )


def _reason(error: StatementRefused) -> str:
    """Return the first line: the server's details may quote the whole row."""
    return str(error).partition("\n")[0]


def _split(waiting: list[Any]) -> tuple[list[Any], list[Any]]:
    return waiting[:MOST_AT_ONCE], waiting[MOST_AT_ONCE:]
