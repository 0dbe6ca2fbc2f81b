"""Receiving: no more messages than there is room for, each of them a job to claim by its id."""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from time import monotonic
from typing import NamedTuple
from uuid import UUID

from forge.core.claims import Claims
from forge.core.errors import ForgeError
from forge.core.event import AttemptLost, Events
from forge.core.job import Job
from forge.store import messages
from forge.store.link import Link
from forge.store.messages import Reclaimed
from forge.store.waiting import within
from forge.store.workers import Registration
from forge.transports.sqs.early import LONGEST_HOLD, Early, EarlyMessages
from forge.transports.sqs.judgement import IN_A_MOMENT, Delete, Hold, judge
from forge.transports.sqs.keeper import Keeper
from forge.transports.sqs.queues import BATCH, Message, Queues

# While a slot that one queue waits for is wanted by another, it waits no longer than this.
SHORT_WAIT = 1.0
# A queue whose last answer was full is asked by so many at once.
MOST_POLLS = 3
# For messages that arrive while the database is away.
LATER = 2.0
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 5.0


class Patience(NamedTuple):
    """How long to wait for messages, for owners that are silent, and for owners nobody knows."""

    wait: float
    dead_after: float
    locked_timeout: float


class Desk(NamedTuple):
    """What the worker has to say about its slots."""

    slots: int
    room: Callable[[], int]
    database_time: Callable[[], float]
    may_claim: Callable[[], bool]
    may_judge: Callable[[], bool]
    start: Callable[[Job], None]
    release: Callable[[Sequence[Job]], None]
    told: Callable[[Sequence[UUID]], None]
    claims: Claims


class Receiver:
    """Listens to the queues, the most important first where slots are scarce."""

    def __init__(
        self,
        link: Link,
        queues: Queues,
        urls: Sequence[str],
        worker: Registration,
        keeper: Keeper,
        desk: Desk,
        patience: Patience,
        events: Events,
    ) -> None:
        self._link = link
        self._queues = queues
        self._urls = list(urls)
        self._worker = worker
        self._keeper = keeper
        self._desk = desk
        self._patience = patience
        self._events = events
        self._polls: dict[asyncio.Task[list[Message]], tuple[str, int]] = {}
        self._busy: set[str] = set()
        # Queues whose last answer was none, or led to no claim since the database did not answer.
        self._silent: set[str] = set()
        self._turn = 0
        self._changed = asyncio.Event()
        self._claiming = asyncio.Lock()
        self.stopped = asyncio.Event()
        self._early = EarlyMessages(desk.slots, self.stopped, self._take_held, self._changed.set)

    def hears(self) -> bool:
        """Whether every queue was heard when it was last asked."""
        return not self._silent

    @property
    def reserved(self) -> int:
        """How many slots wait for jobs whose messages came early."""
        return self._early.reserved

    def look_again(self) -> None:
        """There may be room where there was none."""
        self._changed.set()

    async def stop(self) -> None:
        """Claim nothing more; returns when no claim is on its way."""
        self.stopped.set()
        self._changed.set()
        async with self._claiming:
            pass

    async def run(self) -> None:
        """Receive until told to stop; what arrives after that is given back."""
        pause = FIRST_PAUSE
        while not self.stopped.is_set():
            try:
                await self._round()
                pause = FIRST_PAUSE
            except ForgeError as error:
                self._events.notice("warning", "messages cannot be received", error=str(error))
                await within(self.stopped, pause * random.uniform(0.5, 1.5))
                pause = min(pause * 2, LONGEST_PAUSE)
        if self._polls:
            await asyncio.wait(self._polls)
            with suppress(ForgeError):  # what is not given back is shown again in its time
                await self._take_arrived()
        await self._early.close()

    async def _round(self) -> None:
        """Ask the queues for as much as there is room for, and take what arrives."""
        self._changed.clear()
        room = self._room()
        if room > 0 and not self._polls and room < len(self._urls):
            await self._ask_in_order(room)
            return
        self._ask_all(room)
        changed = asyncio.ensure_future(self._changed.wait())
        # A worker that may not claim now is told by nobody when it may.
        patience = None if self._polls else SHORT_WAIT
        await asyncio.wait(
            {*self._polls, changed}, timeout=patience, return_when=asyncio.FIRST_COMPLETED
        )
        changed.cancel()
        await self._take_arrived()

    def _room(self) -> int:
        if self.stopped.is_set() or not self._desk.may_claim():
            return 0
        asked = sum(asked for _, asked in self._polls.values())
        return self._desk.room() - asked - self._early.reserved

    async def _ask_in_order(self, room: int) -> None:
        """Too few slots for every queue to wait for one: the first that has something gets it."""
        for url in self._urls:
            if await self._hear(url, self._queues.receive(url, room, 0)):
                return
        self._turn = (self._turn + 1) % len(self._urls)
        url, wait = self._urls[self._turn], min(self._patience.wait, SHORT_WAIT)
        await self._hear(url, self._queues.receive(url, room, wait))

    def _ask_all(self, room: int) -> None:
        asked = Counter(url for url, _ in self._polls.values())
        is_ample = len(self._urls) == 1 or room >= BATCH * len(self._urls)
        wait = self._patience.wait if is_ample else min(self._patience.wait, SHORT_WAIT)
        for place, url in enumerate(self._urls):
            share = -(-room // (len(self._urls) - place))
            while share > 0 and asked[url] < (MOST_POLLS if url in self._busy else 1):
                most = min(share, BATCH)
                poll = asyncio.ensure_future(self._queues.receive(url, most, wait))
                self._polls[poll] = (url, most)
                asked[url] += 1
                share -= most
                room -= most

    async def _take_arrived(self) -> None:
        failure: ForgeError | None = None
        for poll in [poll for poll in self._polls if poll.done()]:
            url, most = self._polls.pop(poll)
            try:
                is_full = await self._hear(url, poll) == most
                (self._busy.add if is_full else self._busy.discard)(url)
            except ForgeError as error:
                failure = error
        if failure is not None:
            raise failure

    async def _hear(self, url: str, poll: Awaitable[list[Message]]) -> int:
        """Take what a queue has to say; return how many messages that was."""
        try:
            found = await poll
            await self._take(found)
        except ForgeError:
            self._silent.add(url)
            raise
        self._silent.discard(url)
        return len(found)

    async def _take(self, found: Sequence[Message]) -> None:
        """Claim the jobs that these messages name, or give them back where nothing is claimed."""
        async with self._claiming:
            if not self.stopped.is_set():
                await self._take_up(found)
                return
        await self._queues.hide(found, 0)

    async def _take_up(self, found: Sequence[Message]) -> None:
        named: dict[UUID, Message] = {}
        for message in found:
            if message.job_id is None:
                self._events.notice("warning", "a message names no job", message_id=message.id)
            elif message.job_id in named:
                self._keeper.delete([message])
            else:
                named[message.job_id] = message
        await self._hold_early(named)
        if named:
            await self._claim(named)

    async def _hold_early(self, named: dict[UUID, Message]) -> None:
        """Take out the messages whose jobs are not due yet, and claim those in their time."""
        now = self._desk.database_time()
        early = [
            Early(named.pop(job_id), due_in)
            for job_id, message in list(named.items())
            if message.due_at is not None and 0 < (due_in := message.due_at - now) <= LONGEST_HOLD
        ]
        await self._hold(early)

    async def _hold(self, early: Sequence[Early]) -> None:
        if early and (left := self._early.hold(early)):
            await self._queues.hide(left, IN_A_MOMENT)

    async def _take_held(self, found: Sequence[Message]) -> None:
        try:
            await self._take([message._replace(due_at=None) for message in found])
        except ForgeError as error:
            self._events.notice("warning", "messages cannot be received", error=str(error))

    async def _claim(self, named: dict[UUID, Message]) -> None:
        dead_after = self._patience.dead_after if self._desk.may_judge() else None
        claims = self._desk.claims
        claim = claims.send(monotonic())
        try:
            taken = await self._link.run(
                messages.claim(
                    list(named),
                    self._worker,
                    dead_after=dead_after,
                    locked_timeout=self._patience.locked_timeout,
                )
            )
        except ForgeError:
            # The answer may have been lost alone: the reconciler finds what is ours unheard.
            claims.lost_any = True
            claims.end(claim)
            await self._queues.hide(list(named.values()), LATER)
            raise
        if claims.is_late(claim, monotonic()):
            # Some may be another's by now, and none may run twice; word of them comes again.
            self._desk.release(taken)
            taken = []
        for job in taken:
            self._keeper.keep(named.pop(job.id), job.id, job.lease)
            if isinstance(job, Reclaimed):
                self._events.emit(_lost(job))
            self._desk.start(job)
        claims.end(claim)
        self._desk.told([job.id for job in taken])
        if named:
            await self._judge(named)

    async def _judge(self, named: dict[UUID, Message]) -> None:
        stands = await self._link.run(messages.standing(list(named), self._patience.dead_after))
        for job_id, message in named.items():
            if self._keeper.is_kept(message, job_id):
                continue
            verdict = judge(stands.get(job_id), self._worker)
            if isinstance(verdict, Delete):
                self._keeper.delete([message])
            elif isinstance(verdict, Hold):
                await self._hold([Early(message, verdict.seconds)])
            elif verdict.seconds is not None:
                await self._queues.hide([message], verdict.seconds)


def _lost(job: Reclaimed) -> AttemptLost:
    return AttemptLost(
        job.id,
        job.type,
        job.attempt,
        job.crashes - 1,
        job.tenant_id,
        job.correlation_id,
        job.ran_for,
    )
