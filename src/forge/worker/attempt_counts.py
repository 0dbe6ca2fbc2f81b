"""Counts what becomes of attempts, for forge_statistics: written every ten seconds."""

import time
from collections import deque
from collections.abc import Sequence
from operator import itemgetter
from typing import NamedTuple
from uuid import UUID

from forge.core.events import AttemptLost, Event, Events
from forge.core.histogram import marks_of
from forge.core.job import BUILTIN_QUEUE, Job
from forge.core.job_statistics import Tally
from forge.core.lifecycle import Status
from forge.core.outcome import Completion, Settlement
from forge.core.schedules.run import NO_QUEUE
from forge.core.workers.clock import DatabaseClock
from forge.store import job_statistics
from forge.store.connection.link import Link
from forge.store.job_statistics import Slot, TenantSlot

MINUTE, TENANT_MINUTES = 60, 300
# Seconds after its end for which a minute can be written; it is merged after 120. A statement may
# take 30 s, and the database refuses what is later than 90.
WRITABLE = 60
# The fields of a completion's job that say where it counts: type, queue and tenant.
_GROUP = itemgetter(*map(Job._fields.index, ("type", "queue", "tenant_id")))
_JOB, _SECONDS = (itemgetter(Completion._fields.index(name)) for name in ("job", "seconds"))
Group = tuple[str, str, int | None]
_OUTCOMES = {
    "retry": "retried",
    "crashed": "crashed",
    "lost": "crashed",
    "released": "released",
}


class Ended(NamedTuple):
    """An attempt whose end is not written yet, and how long it ran."""

    job: Job
    seconds: float | None = None


class AttemptCounts:
    """What this worker counted, per minute; its methods are called in the worker's loop.

    Only what the database has accepted counts. What it has not written is lost if the worker is
    killed: at most the last ten seconds.
    """

    interval = 10.0

    def __init__(self, link: Link, clock: DatabaseClock, writer: UUID, events: Events) -> None:
        self._link = link
        self._clock = clock
        self._writer = writer
        self._events = events
        self._tallies: dict[Slot | TenantSlot, Tally] = {}
        # What the database is known to have of each.
        self._written: dict[Slot | TenantSlot, Tally] = {}
        self._ended: dict[tuple[UUID, int], Ended] = {}
        # Rescues happen in the heart's thread.
        self._lost: deque[AttemptLost] = deque()

    def open(self) -> None:
        """Listen to events."""
        self._events.begin_listeners.append(self._began)
        self._events.other_listeners.append(self._noticed)

    def close(self) -> None:
        self._events.begin_listeners.remove(self._began)
        self._events.other_listeners.remove(self._noticed)

    def completed(self, acks: Sequence[Completion]) -> None:
        """Count jobs that were completed. It takes a fraction of a microsecond per job."""
        keys: set[Group] = set(map(_GROUP, map(_JOB, acks)))
        if len(keys) == 1:  # as in most batches
            self._count(keys.pop(), acks)
            return
        groups: dict[Group, list[Completion]] = {key: [] for key in keys}
        for ack in acks:
            groups[_GROUP(_JOB(ack))].append(ack)
        for key, its_acks in groups.items():
            self._count(key, its_acks)

    def ended(self, job: Job, seconds: float | None = None) -> None:
        """Remember an attempt until its settlement is written."""
        self._ended[job.id, job.lease] = Ended(job, seconds)

    def settled(self, acks: Sequence[Settlement], refused: Sequence[Settlement]) -> None:
        """Count attempts that ended otherwise, except those whose ack came too late."""
        if not self._ended:
            return
        for ack in acks:
            ended = self._ended.pop((ack.id, ack.lease), None)
            if ended is not None and ack not in refused:
                self._settle(ended, ack)

    async def write(self) -> None:
        """Write what was counted since the last time, in one statement."""
        while self._lost:
            lost = self._lost.popleft()
            self._add((lost.type, lost.queue, lost.tenant_id), "crashed")
        self._carry_over()
        changed = {
            slot: tally.copy()
            for slot, tally in self._tallies.items()
            if slot not in self._written or tally.size > self._written[slot].size
        }
        if not changed:
            return
        written = await self._link.run(job_statistics.write(changed, self._writer))
        self._written |= {slot: tally for slot, tally in changed.items() if written.has(slot)}

    def _began(self, job: Job, when: float) -> None:
        """Count how long a job waited whose attempt is reported before it is completed."""
        if job.queue != NO_QUEUE:
            tally, _ = self._of(_GROUP(job))
            tally.waits.update(marks_of([when + self._clock.ahead - job.due]))

    def _noticed(self, event: Event) -> None:
        if isinstance(event, AttemptLost):
            self._lost.append(event)

    def _count(self, group: Group, acks: Sequence[Completion]) -> None:
        tally, ahead = self._add(group, "completed", len(acks)), self._clock.ahead
        tally.runs.update(marks_of(map(_SECONDS, acks)))
        waits = [began + ahead - job.due for _, _, _, job, began, _ in acks if began and job]
        tally.waits.update(marks_of(waits))

    def _settle(self, ended: Ended, ack: Settlement) -> None:
        group = _GROUP(ended.job)
        if (outcome := _OUTCOMES.get(ack.outcome or "")) is not None:
            self._add(group, outcome)
        if ack.status in (Status.FAILED, Status.DEAD_LETTER):
            self._add(group, "failed")
        elif ack.outcome is None and ack.status is Status.PENDING:
            self._add(group, "snoozed")
        if ended.seconds is not None and ack.outcome is not None:
            self._of(group)[0].runs.update(marks_of([ended.seconds]))

    def _add(self, group: Group, outcome: str, number: int = 1) -> Tally:
        tally, of_tenant = self._of(group)
        tally.outcomes[outcome] += number
        if of_tenant is not None:
            of_tenant.outcomes[outcome] += number
        return tally

    def _of(self, group: Group) -> tuple[Tally, Tally | None]:
        job_type, queue, tenant = group
        now = int(time.monotonic() + self._clock.ahead)
        tally = self._tally(Slot(now - now % MINUTE, job_type, queue))
        if tenant is None or queue == BUILTIN_QUEUE:
            return tally, None
        return tally, self._tally(TenantSlot(now - now % TENANT_MINUTES, tenant))

    def _tally(self, slot: Slot | TenantSlot) -> Tally:
        tally = self._tallies.get(slot)
        if tally is None:
            tally = self._tallies[slot] = Tally()
        return tally

    def _carry_over(self) -> None:
        """Forget what is written of minutes that have passed; count the rest in this one.

        After an outage of the database these minutes may be merged already, so that their rows
        cannot be replaced any more.
        """
        now = int(time.monotonic() + self._clock.ahead)
        for slot in list(self._tallies):
            length = MINUTE if isinstance(slot, Slot) else TENANT_MINUTES
            if slot.minute + length + WRITABLE > now:
                continue
            left, written = self._tallies.pop(slot), self._written.pop(slot, None)
            if written is not None:
                left.subtract(written)
            if left.size:
                self._tally(slot._replace(minute=now - now % length)).add(left)
