"""Heartbeats from a thread of their own, so that a worker whose loop is blocked stays alive to
others."""

import asyncio
import random
import threading
import time
from typing import Protocol
from uuid import UUID

from forge.core.errors import ForgeError
from forge.core.events import Events, WorkerAlive
from forge.store import jobs, workers
from forge.store.connection.database import Database
from forge.store.connection.driver_errors import is_refusal
from forge.store.connection.link import Link
from forge.store.connection.waiting import within
from forge.store.notify import worker_channel
from forge.store.workers import Beat, Drain, Load, Registration
from forge.transports.transport import Transport
from forge.worker.attempts import Stop
from forge.worker.heartbeat_carrier import HeartbeatCarrier, WorkerLinks
from forge.worker.liveness import Liveness
from forge.worker.loops import StopSignals
from forge.worker.reconcile import Recheck
from forge.worker.rescue import rescue, rescue_runs
from forge.worker.runner import Runner

# How many seconds the end of a worker waits for the thread.
JOIN_TIMEOUT = 10


class HeartbeatHandler(Protocol):
    """What heartbeats need of their worker, and cause in it; called in the heart's thread."""

    def load(self) -> Load:
        """Return how many slots are taken, and whether the worker drains or is drained."""

    def on_beat(self, beat: Beat, *, was_silent: bool) -> None:
        """React to a heartbeat, `was_silent` when it is the first after a long silence."""

    def on_silence(self) -> list[str]:
        """Ask every handler to stop, and return the types of those that still run."""


class Heartbeat:
    """Sends heartbeats, and rescues the jobs of workers that send none."""

    def __init__(
        self,
        database: Database,
        worker: Registration,
        liveness: Liveness,
        handler: HeartbeatHandler,
        links: WorkerLinks,
        events: Events,
    ) -> None:
        self._database = database
        self._worker = worker
        self._liveness = liveness
        self._timing = liveness.timing
        self._handler = handler
        self._links = links
        self._events = events
        self._thread = threading.Thread(target=self._run, name="forge-heart", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._is_stopped = False
        self._next_search = 0.0
        self._unknown: dict[UUID, float] = {}
        self.clock = liveness.clock

    def start(self) -> None:
        self._liveness.silence.heard(time.monotonic())
        self._thread.start()

    def is_heard(self) -> bool:
        """Whether the last heartbeat is recent enough to start something new."""
        return self._liveness.is_heard()

    def stop(self) -> None:
        """Send no more heartbeats; return when the thread has ended."""
        if not self._thread.is_alive():
            return
        self._is_stopped = True
        if self._loop is not None and self._stop is not None:
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(timeout=JOIN_TIMEOUT)

    def _run(self) -> None:
        asyncio.run(self._beat_on())

    async def _beat_on(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        if self._is_stopped:  # before this loop existed
            return
        timeout = self._timing.statement_timeout
        carrier = HeartbeatCarrier(self._database, timeout, self._links, self._events)
        watching = asyncio.gather(self._watch_silence(self._stop), self._report(self._stop))
        pause = 0.0
        while not await within(self._stop, pause):
            pause = self._timing.interval * random.uniform(0.9, 1.0)
            asked_at = time.monotonic()
            try:
                await self._beat(carrier)
            except ForgeError as error:
                self._liveness.lost()
                if is_refusal(error.__cause__):
                    self._liveness.silence.refused(asked_at)
                pause = min(pause, 0.5)
                self._events.notice("warning", "a heartbeat was lost", error=str(error))
            except Exception as error:
                self._liveness.lost()
                self._events.notice("error", "a heartbeat failed", error=repr(error))
        await watching
        await carrier.close()

    async def _report(self, stop: asyncio.Event) -> None:
        """Apart from heartbeats, which take long while the database does not answer."""
        while True:
            self._events.emit(WorkerAlive())
            if await within(stop, self._timing.interval):
                return

    async def _watch_silence(self, stop: asyncio.Event) -> None:
        """Have handlers stopped before another worker may take their jobs, and again until then."""
        silence, pause, now = self._liveness.silence, 0.0, time.monotonic()
        asked = 0
        while not await within(stop, pause):
            stood_still = time.monotonic() - now - pause
            now = time.monotonic()
            if (left := silence.until_stop(now)) > 0:
                pause, asked = left, 0
                continue
            pause = silence.margin
            if stood_still > silence.margin:
                continue  # this process was halted: its next heartbeat may arrive at once
            running, asked = self._handler.on_silence(), asked + 1
            # Asked a second time, a margin later, when others may take the jobs.
            if running and asked == 2:
                self._events.notice(
                    "error",
                    "handlers did not stop while the database is silent; another worker may run "
                    "their jobs now, too",
                    running=running,
                )

    async def _beat(self, carrier: HeartbeatCarrier) -> None:
        beat = await carrier.run(
            workers.beat(
                self._worker,
                self._handler.load(),
                dead_after=self._timing.dead_after,
                channel=worker_channel(self._worker.id),
            )
        )
        now = time.monotonic()
        full_at = now if beat.is_full else carrier.full_at
        was_silent = self._liveness.beat(carrier.sent_at, now, beat.now, full_at)
        self._handler.on_beat(beat, was_silent=was_silent)
        # Only a worker whose own heartbeats were steady may judge others: after an outage of the
        # database the last heartbeat of every worker is old, and none of them is dead.
        if self._liveness.may_judge():
            await self._rescue(carrier.link, beat.dead, now)

    async def _rescue(self, link: Link, dead: list[UUID], now: float) -> None:
        timing, is_searching = self._timing, now >= self._next_search
        owners = [*dead, *await self._gone(link, now)]
        if owners:
            await rescue(link, owners, timing.dead_after, timing.job_stale_after, self._events)
        if self._worker.schedule_types and (dead or is_searching):
            await rescue_runs(link, None, timing.dead_after, timing.run_stale_after, self._events)
        if dead:
            await link.run(workers.bury(dead, timing.dead_after * 10))

    async def _gone(self, link: Link, now: float) -> list[UUID]:
        """Find owners that have had no row for a while: a living one makes its row again."""
        if now < self._next_search and not self._unknown:
            return []
        shortest = min(self._timing.job_stale_after, self._timing.run_stale_after)
        self._next_search = now + min(max(shortest / 4, 1), 30)
        found = await link.run(jobs.unknown_owners())
        self._unknown = {owner: self._unknown.get(owner, now) for owner in found}
        return [o for o, since in self._unknown.items() if now - since >= self._timing.dead_after]


class HeartbeatReactions:
    """Called in the heart's thread; what is not thread-safe it does in the loop."""

    def __init__(
        self,
        runner: Runner,
        recheck: Recheck,
        transport: Transport,
        liveness: Liveness,
        stop: StopSignals,
        events: Events,
    ) -> None:
        self._runner = runner
        self._held = runner.held
        self._recheck = recheck
        self._transport = transport
        self._liveness = liveness
        self._stop = stop
        self._events = events
        self._loop = asyncio.get_running_loop()
        self._is_cut_off = False

    def load(self) -> Load:
        held = self._held
        return Load(held.slots_taken, self._stop.draining.is_set(), held.drain)

    def on_beat(self, beat: Beat, *, was_silent: bool) -> None:
        self._loop.call_soon_threadsafe(self._react, beat, was_silent)

    def on_silence(self) -> list[str]:
        self._runner.interrupt_all(Stop.CUT_OFF)
        self._loop.call_soon_threadsafe(self._cut_off)
        return self._held.running_types()

    def _react(self, beat: Beat, was_silent: bool) -> None:
        self._is_cut_off = False
        if was_silent:
            # Stopped by a signal, for example: other workers may have taken its jobs.
            self._recheck.add_all()
        if not beat.is_current:
            self._events.notice("error", "another worker has taken this one's id; it stops")
            self._stop.release()
        self._transport.heartbeat_sent(beat.peers, is_first=beat.is_first)
        if beat.is_current and bool(beat.drain) is not self._held.is_drained:
            self._drain(beat.drain)

    def _drain(self, drain: Drain) -> None:
        """Claim nothing more, or claim again, as an operator asked for."""
        self._held.change_drain(drain)
        if drain:
            self._events.notice(
                "info", "drained: it claims nothing until resumed", by=drain.by, reason=drain.reason
            )
            self._held.release_ahead()
        else:
            self._events.notice("info", "resumed: it claims again")
        self._runner.wake_claims()

    def _cut_off(self) -> None:
        if not self._liveness.is_cut_off():
            return  # heard again, while the loop was blocked: the reconciler finds what was taken
        if self._held.running and not self._is_cut_off:
            self._events.notice(
                "warning",
                "the database is silent; handlers are asked to stop before another worker takes "
                "their jobs",
                running=self._held.running_types(),
            )
        self._is_cut_off = True
        self._runner.release_all(Stop.CUT_OFF)
        self._held.release_ahead()
