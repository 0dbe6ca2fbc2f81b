"""Heartbeats from a thread of their own, so that a handler that blocks the loop is not taken for
dead; and the rescue of jobs whose workers are."""

import asyncio
import random
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple, Self
from uuid import UUID

from forge.config import Config
from forge.core.clock import DatabaseClock
from forge.core.errors import ForgeError, StatementRefused
from forge.core.event import AttemptLost, Events, JobsRescued
from forge.core.hearing import Hearing
from forge.core.lifecycle import Status
from forge.store import jobs, schedules, workers
from forge.store.database import Database
from forge.store.fault import is_refusal
from forge.store.link import Link
from forge.store.notify import WAKE, send, worker_channel
from forge.store.statement import Row, Rows
from forge.store.waiting import within
from forge.store.workers import Beat, Registration
from forge.worker.carrier import Carrier, Send

BATCH = 1000


class Pace(NamedTuple):
    """How often a heart beats, and when one is taken for dead, in seconds."""

    interval: float
    dead_after: float
    # Without a sign of life of a job, or of a run, whose owner has no row.
    job_stale_after: float
    run_stale_after: float

    @classmethod
    def of(cls, config: Config) -> Self:
        settings = config.worker
        return cls(
            settings.heartbeat_interval.total_seconds(),
            settings.dead_after.total_seconds(),
            config.job_stale_threshold.total_seconds(),
            settings.stale_threshold.total_seconds(),
        )

    @property
    def patience(self) -> float:
        """How long a heartbeat may take: a dead connection is noticed with time for another one."""
        return max((self.dead_after - self.interval) / 2, 0.5)


class Heart:
    """Says that this worker lives, and takes back the jobs of those that do not."""

    def __init__(
        self,
        database: Database,
        worker: Registration,
        pace: Pace,
        events: Events,
        on_beat: Callable[[Beat, bool], None],
        on_silence: Callable[[], list[str]],
        carry: Send,
    ) -> None:
        self._database = database
        self._worker = worker
        self._pace = pace
        self._events = events
        self._on_beat = on_beat
        self._carry = carry
        self._full_at = float("-inf")
        self._on_silence = on_silence
        self._thread = threading.Thread(target=self._run, name="forge-heart", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._is_stopped = False
        self._steady_since: float | None = None
        self._last_beat = 0.0
        self._next_search = 0.0
        self._unknown: dict[UUID, float] = {}
        self._hearing = Hearing(pace.dead_after)
        self.clock = DatabaseClock(time.time() - time.monotonic())
        self.running = 0
        self.draining = False

    def start(self) -> None:
        self._hearing.heard(time.monotonic())
        self._thread.start()

    def is_heard(self) -> bool:
        """Whether the last heartbeat is young enough to begin something new."""
        return self._hearing.is_heard(time.monotonic())

    def is_cut_off(self) -> bool:
        """Whether the database has been silent for so long that handlers have to stop."""
        return self._hearing.until_stop(time.monotonic()) <= 0

    def may_judge(self) -> bool:
        """Whether this worker was heard long enough to judge a silent one dead.

        While the server has no connection left, and for `dead_after` from then on, a living worker
        may be silent only because it cannot connect.
        """
        since = self._steady_since
        if since is None:
            return False
        return self._last_beat - max(since, self._full_at) >= self._pace.dead_after

    def stop(self) -> None:
        """Stop beating; returns when the thread has ended."""
        if not self._thread.is_alive():
            return
        self._is_stopped = True
        if self._loop is not None and self._stop is not None:
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(timeout=10)

    def _run(self) -> None:
        asyncio.run(self._beat_on())

    async def _beat_on(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        if self._is_stopped:  # before there was a loop to be told in
            return
        carrier = Carrier(self._database, self._pace.patience, self._carry, self._events)
        watching = asyncio.create_task(self._watch_silence(self._stop))
        pause = 0.0
        while not await within(self._stop, pause):
            pause = self._pace.interval * random.uniform(0.9, 1.0)
            asked_at = time.monotonic()
            try:
                await self._beat(carrier)
            except ForgeError as error:
                self._steady_since = None
                if is_refusal(error.__cause__):
                    self._hearing.refused(asked_at)
                pause = min(pause, 0.5)
                self._events.notice("warning", "a heartbeat was lost", error=str(error))
            except Exception as error:
                self._steady_since = None
                self._events.notice("error", "a heartbeat failed", error=repr(error))
        await watching
        await carrier.close()

    async def _watch_silence(self, stop: asyncio.Event) -> None:
        """Have handlers stopped before another worker may take their jobs, and again until then."""
        hearing, pause, now = self._hearing, 0.0, time.monotonic()
        asked = 0
        while not await within(stop, pause):
            stood_still = time.monotonic() - now - pause
            now = time.monotonic()
            if (left := hearing.until_stop(now)) > 0:
                pause, asked = left, 0
                continue
            pause = hearing.margin
            if stood_still > hearing.margin:
                continue  # this process was halted: it may be heard again at once
            running, asked = self._on_silence(), asked + 1
            # Asked a second time, a margin later, when others may take the jobs.
            if running and asked == 2:
                self._events.notice(
                    "error",
                    "handlers did not stop while the database is silent; another worker may run "
                    "their jobs now, too",
                    running=running,
                )

    async def _beat(self, carrier: Carrier) -> None:
        beat = await carrier.run(
            workers.beat(
                self._worker,
                running=self.running,
                draining=self.draining,
                dead_after=self._pace.dead_after,
                channel=worker_channel(self._worker.id),
            )
        )
        now = time.monotonic()
        self.clock.read(carrier.sent_at, now, beat.now)
        if self._steady_since is None or now - self._last_beat > self._pace.dead_after / 2:
            self._steady_since = now
        self._last_beat = now
        self._full_at = now if beat.is_full else max(self._full_at, carrier.full_at)
        is_back = not self.is_heard()
        self._hearing.heard(carrier.sent_at)
        self._on_beat(beat, is_back)
        # Only who has itself been heard of all the while may judge: after an outage of the database
        # everybody's last heartbeat is old, and nobody is dead.
        if self.may_judge():
            await self._rescue(carrier.link, beat.dead, now)

    async def _rescue(self, link: Link, dead: list[UUID], now: float) -> None:
        pace, is_searching = self._pace, now >= self._next_search
        owners = [*dead, *await self._gone(link, now)]
        if owners:
            await rescue(link, owners, pace.dead_after, pace.job_stale_after, self._events)
        if self._worker.schedule_types and (dead or is_searching):
            await rescue_runs(link, None, pace.dead_after, pace.run_stale_after, self._events)
        if dead:
            await link.run(workers.bury(dead, self._pace.dead_after * 10))

    async def _gone(self, link: Link, now: float) -> list[UUID]:
        """Find owners that have had no row for a while: a living one makes its row again."""
        if now < self._next_search and not self._unknown:
            return []
        shortest = min(self._pace.job_stale_after, self._pace.run_stale_after)
        self._next_search = now + min(max(shortest / 4, 1), 30)
        found = await link.run(jobs.unknown_owners())
        self._unknown = {owner: self._unknown.get(owner, now) for owner in found}
        return [o for o, since in self._unknown.items() if now - since >= self._pace.dead_after]


async def rescue_runs(
    link: Link,
    owners: list[UUID] | None,
    dead_after: float,
    stale_after: float,
    events: Events,
) -> None:
    """Make schedules claimable again whose owners, these or any, died or are unknown for long."""
    while True:
        found = await link.run(
            schedules.rescue(owners, dead_after=dead_after, stale_after=stale_after, limit=BATCH)
        )
        await _tell(link, found, events)
        if len(found) < BATCH:
            return


async def rescue(
    link: Link, owners: list[UUID], dead_after: float, stale_after: float, events: Events
) -> None:
    """Take back every job of these owners, a batch at a time."""

    async def take_back(only: list[UUID] | None) -> int:
        found = await link.run(
            jobs.rescue(owners, only, dead_after=dead_after, stale_after=stale_after, limit=BATCH)
        )
        for row in found:
            if row["was"] == Status.RUNNING:
                events.emit(_lost(row))
        await _tell(link, found, events)
        return len(found)

    try:
        while await take_back(None) == BATCH:
            pass
    except StatementRefused as error:
        events.notice("error", "a rescue failed; its jobs are rescued one by one", error=str(error))
        for job_id in await link.run(jobs.owned_by(owners)):
            with suppress(StatementRefused):
                await take_back([job_id])


async def _tell(link: Link, rescued: Rows, events: Events) -> None:
    """Say whose jobs were taken back, and that they wait."""
    if rescued:
        ids = tuple(row["id"] for row in rescued)
        events.emit(JobsRescued(ids, tuple({row["worker_id"] for row in rescued})))
        await link.run(send(WAKE))


def _lost(row: Row) -> AttemptLost:
    return AttemptLost(
        row["id"],
        row["job_type"],
        row["attempt"],
        row["crashes"],
        row["tenant_id"],
        row["correlation_id"],
        row["seconds"],
    )
