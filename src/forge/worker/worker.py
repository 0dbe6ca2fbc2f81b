"""A worker: its parts, started together and ended in order."""

import asyncio
import os
import socket
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import version
from typing import Any
from uuid import UUID, uuid4

from forge.app import Forge
from forge.core.errors import ForgeError
from forge.core.herd import is_called
from forge.core.job import Job
from forge.core.outcome import Released, settle
from forge.requests import REQUESTS
from forge.store import job_types, workers
from forge.store.database import Database
from forge.store.listener import Listener
from forge.store.notify import WAKE, worker_channel
from forge.store.waiting import within
from forge.store.workers import Beat, Registration
from forge.types import type_rows
from forge.worker.acker import Acker
from forge.worker.children import Children
from forge.worker.claimer import Claimer
from forge.worker.every import every
from forge.worker.heart import Heart, Pace, rescue
from forge.worker.notes import INTERVAL as NOTES_INTERVAL
from forge.worker.notes import Notes
from forge.worker.prune import Pruner
from forge.worker.reconcile import Reconciler
from forge.worker.runner import Runner
from forge.worker.surroundings import InLoop
from forge.worker.tell import INTERVAL as TELL_INTERVAL
from forge.worker.tell import Teller

DEADLINES_INTERVAL = 0.1
PASS_ON_INTERVAL = 1.0
LAG = 1.0


class Worker:
    """Claims and runs the jobs of one app until it is stopped."""

    def __init__(self, app: Forge) -> None:
        self.app = app
        self.settings = app.config.worker
        self.events = app.events
        self.definitions = app.definitions | REQUESTS
        self.registration = self._registration()
        self.started = asyncio.Event()
        self._draining = asyncio.Event()
        self._releasing = asyncio.Event()
        self._stop = asyncio.Event()
        self._heard_at = 0.0
        self._peers: list[UUID] = []
        self._passed_on_at = 0.0

    async def run(self) -> None:
        """Work until `drain` or `release` is called and all that was begun is settled."""
        database = await (await self.app.session()).database()
        await self._open(database)
        async with asyncio.TaskGroup() as chores:
            for seconds, act in self._rounds():
                chores.create_task(every(seconds, act, self._stop, self.events))
            if not database.pooler:
                chores.create_task(self.listener.run(self._stop))
            acking = chores.create_task(self.acker.run(self._stop))
            claiming = chores.create_task(self.claimer.run())
            self._looked_at = self._loop.time()
            self.started.set()
            await self._draining.wait()
            await self._wind_down(claiming, acking)
        await self._close()

    def drain(self) -> None:
        """Claim nothing more and end when what runs is done, or the grace is over."""
        self._draining.set()

    def release(self) -> None:
        """End now: give back whatever is not done."""
        self._draining.set()
        self._releasing.set()

    async def _open(self, database: Database) -> None:
        settings = self.settings
        self._loop = asyncio.get_running_loop()
        claims, more_claims, acks, more_acks, side = (database.link() for _ in range(5))
        self._links = (claims, more_claims, acks, more_acks, side)
        self._side = side
        await side.run(workers.register(self.registration))
        await side.run(job_types.register(type_rows(self.app.definitions.values())))
        # What this worker owned in an earlier life is nobody's now.
        stale = settings.stale_threshold.total_seconds()
        await rescue(side, [self.registration.id], 0, stale, self.events)
        self.teller = Teller(side)
        self.acker = Acker((acks, more_acks), self.events, self.teller.changed)
        self.notes = Notes(side, self.teller.changed, self._let_go)
        self.around = InLoop(side, self.notes, await database.users())
        children = Children(self.app, database.url, self.notes)
        self.runner = Runner(
            self.app, self.definitions, self.acker, self.notes, self.around, children
        )
        self.acker.refused = self._let_go
        self.claimer = Claimer(
            (claims, more_claims),
            self.registration,
            self.runner,
            self.acker,
            self.events,
            batch_size=settings.batch_size,
            poll=self._poll,
            told=self.teller.changed,
            is_heard=lambda: self.heart.is_heard(),
        )
        self.acker.written = self.claimer.look_again
        self.runner.slot_freed = self.claimer.slot_freed
        self.listener = Listener(
            database, {WAKE: self._woken, worker_channel(self.registration.id): self._called}
        )
        self.pruner = Pruner(side, self.app.config.retention)
        self.reconciler = Reconciler(
            side, self.registration, self.runner, self.claimer, self._let_go, self._is_unwritten
        )
        self.heart = Heart(
            database, self.registration, self._pace(), self.events, self._beat_from_thread
        )
        self.heart.start()

    async def _wind_down(
        self, claiming: "asyncio.Task[None]", acking: "asyncio.Task[None]"
    ) -> None:
        self.heart.draining = True
        self.claimer.stop()
        await claiming
        self.release_jobs(self.claimer.overdue())
        grace = self._loop.time() + self.settings.shutdown_grace.total_seconds()
        while self.runner.running and self._loop.time() < grace:
            if await within(self._releasing, 0.05):
                break
        if self.runner.running:
            await self._release_running()
        self._stop.set()
        self.acker.wake()
        await asyncio.wait([acking], timeout=self.settings.shutdown_grace.total_seconds())
        if not acking.done():
            self.events.notice("error", "the database is away: what is not written will run again")
            acking.cancel()

    async def _release_running(self) -> None:
        """Ask what still runs to stop; what does not is given back all the same, and we exit."""
        tasks = [attempt.task for attempt in self.runner.running.values() if attempt.task]
        self.runner.release_all()
        if tasks:
            await asyncio.wait(tasks, timeout=2)
        self.release_jobs([attempt.job for attempt in self.runner.running.values()])

    def release_jobs(self, held: Sequence[Job]) -> None:
        """Give jobs back, their attempts with them."""
        for job in held:
            policy = self.runner.policy_of(job)
            self.acker.ack(settle(job, Released(), policy, 0.0), None)

    async def _close(self) -> None:
        await asyncio.to_thread(self.heart.stop)
        with suppress(ForgeError):  # who cannot say goodbye is found dead instead
            await self.reconciler.give_back_all()
            await self.teller.tell()
            await self._side.run(workers.leave(self.registration))
        await self.runner.close()
        await self.around.close()
        for link in self._links:
            await link.close()

    def _rounds(self) -> list[tuple[float, Any]]:
        return [
            (NOTES_INTERVAL, self.notes.flush),
            (TELL_INTERVAL, self.teller.tell),
            (DEADLINES_INTERVAL, self._watch_deadlines),
            (0.25, self._release_overdue),
            (self.reconciler.interval, self.reconciler.reconcile),
            (self.pruner.interval, self._prune),
        ]

    async def _prune(self) -> None:
        if self._peers[:1] == [self.registration.id]:  # one worker's worth of pruning is enough
            await self.pruner.prune()

    async def _watch_deadlines(self) -> None:
        self.heart.running = len(self.runner.running)
        self._watch_the_loop()
        self.runner.stop_overdue()

    def _watch_the_loop(self) -> None:
        """Say so when a handler kept the loop from turning: everything else waited for it."""
        now = self._loop.time()
        stood_still = now - self._looked_at - DEADLINES_INTERVAL
        if stood_still > LAG:
            running = sorted({a.job.type for a in self.runner.running.values()})
            self.events.notice(
                "warning",
                f"the event loop stood still for {stood_still:.1f} s; a handler that computes or "
                "blocks should be a plain function, which runs in a thread",
                running=running,
            )
        self._looked_at = now

    async def _release_overdue(self) -> None:
        self.release_jobs(self.claimer.overdue())

    def _registration(self) -> Registration:
        settings = self.settings
        return Registration(
            settings.id or uuid4(),
            uuid4(),
            socket.gethostname(),
            os.getpid(),
            version("forge-jobs"),
            list(settings.capabilities),
            None if settings.queues is None else list(settings.queues),
            sorted(self.app.definitions),
            settings.max_concurrent,
        )

    def _pace(self) -> Pace:
        settings = self.settings
        return Pace(
            settings.heartbeat_interval.total_seconds(),
            settings.dead_after.total_seconds(),
            settings.stale_threshold.total_seconds(),
        )

    def _poll(self) -> float:
        """Poll seldom only while the listener is known to hear, and the worker may claim."""
        settings = self.settings
        is_calm = self._hears() and self.heart.is_heard()
        pause = settings.idle_poll_interval if is_calm else settings.poll_interval
        return pause.total_seconds()

    def _is_unwritten(self) -> bool:
        return self.acker.unwritten > 0

    def _woken(self, payload: str) -> None:
        if not is_called(payload, self.registration.id, self._peers):
            return
        self.claimer.hint()
        if payload and len(self.runner.running) >= self.settings.max_concurrent:
            self._pass_on()

    def _pass_on(self) -> None:
        """Called, but with no slot free: let everyone know, though not all the time."""
        now = self._loop.time()
        if len(self._peers) > 1 and now - self._passed_on_at > PASS_ON_INTERVAL:
            self._passed_on_at = now
            self.teller.call_everyone()

    def _called(self, payload: str) -> None:
        """Our own knocking, or word that a job of ours was cancelled."""
        self._heard_at = self._loop.time()
        if payload:
            job_id, lease = payload.split()
            self._let_go(UUID(hex=job_id), int(lease))

    def _let_go(self, job_id: UUID, lease: int) -> None:
        self.runner.let_go(job_id, lease)
        self.claimer.give_up(job_id)

    def _beat_from_thread(self, beat: Beat) -> None:
        self._loop.call_soon_threadsafe(self._on_beat, beat)

    def _on_beat(self, beat: Beat) -> None:
        if not beat.is_current:
            self.events.notice("error", "another worker has taken this one's id; it stops")
            self.release()
        self._peers = beat.peers
        # A blocked loop reads its sockets late: ask a moment after it has had the chance to.
        self._loop.call_later(1, self._check_listener)

    def _check_listener(self) -> None:
        if self.listener.hears and not self._hears():
            self.events.notice("warning", "the listener does not hear; polling, and listening anew")
            self.listener.reconnect()

    def _hears(self) -> bool:
        """Whether the listener lately heard what this worker's own heart sends it."""
        patience = 2 * self.settings.heartbeat_interval.total_seconds() + 1
        return self.listener.hears and self._loop.time() - self._heard_at < patience
