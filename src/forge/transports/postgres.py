"""PostgreSQL as transport: workers are woken by notifications and find their jobs in the table."""

import asyncio
import random
from collections.abc import Sequence
from uuid import UUID

from forge.core.errors import ForgeError
from forge.core.events import Events
from forge.core.workers.wakeups import EVERYONE, call, is_called, is_for_request
from forge.store.connection.database import Database
from forge.store.connection.link import Link
from forge.store.connection.listener import Listener
from forge.store.connection.waiting import Signal
from forge.store.jobs import Lane
from forge.store.notify import WAKE, named_attempt, send, worker_channel
from forge.transports.transport import Round, WorkerPort

# A notification takes a lock that all notifying commits share: one stands for many dispatches.
DEBOUNCE = 0.005
# For a whole transaction: every worker may find something to do.
MANY = 1_000_000
# A caller's own transaction commits later: wake-ups after these delays find what it brought.
DELAYS_AFTER_COMMIT = (0.02, 0.2)
# A worker without a free slot wakes all others at most this often, in seconds.
PASS_ON_INTERVAL = 1.0


class Waker:
    """Wakes idle workers after a dispatch: at once for the first, then at most every few ms."""

    def __init__(self, database: Database) -> None:
        self._link: Link = database.link(timeout=5)
        self._sending: asyncio.Task[None] | None = None
        self._jobs = 0
        self._has_builtin_job = False
        # When to wake workers for what callers commit, by the loop's clock, and the task for it.
        self._delayed: list[float] = []
        self._waiting: asyncio.Task[None] | None = None

    def wake(self, jobs: int = 1, *, is_request: bool = False) -> None:
        """Announce jobs that were committed."""
        self._jobs += jobs
        self._has_builtin_job |= is_request
        if self._sending is None or self._sending.done():
            self._sending = asyncio.get_running_loop().create_task(self._send())

    def wake_later(self) -> None:
        """Announce jobs that a caller will commit soon."""
        loop = asyncio.get_running_loop()
        if len(self._delayed) < len(DELAYS_AFTER_COMMIT):
            self._delayed += [loop.time() + delay for delay in DELAYS_AFTER_COMMIT]
        # A task, not timers: a loop that ends cancels its tasks, and must start no more of them.
        if self._waiting is None or self._waiting.done():
            self._waiting = loop.create_task(self._wake_delayed())

    async def close(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            await asyncio.wait([self._waiting])
        if self._sending is not None:
            await self._sending
        await self._link.close()

    async def _wake_delayed(self) -> None:
        loop = asyncio.get_running_loop()
        while self._delayed:
            await asyncio.sleep(min(self._delayed) - loop.time())
            now = loop.time()
            self._delayed = [at for at in self._delayed if at > now]
            self.wake()

    async def _send(self) -> None:
        while self._jobs:
            jobs, self._jobs = self._jobs, 0
            is_request, self._has_builtin_job = self._has_builtin_job, False
            payload = call(jobs, random.getrandbits(31), is_request=is_request)
            try:
                await self._link.run(send(WAKE, payload))
            except ForgeError:
                return  # a wake-up may be lost: the workers' poll finds the row
            await asyncio.sleep(DEBOUNCE)


class PostgresTransport:
    """Wakes a worker when jobs were dispatched; the worker finds them by itself."""

    def __init__(self, database: Database, link: Link, interval: float, events: Events) -> None:
        """`interval` is that of heartbeats, and each heartbeat notifies its own worker."""
        self._database = database
        self._link = link
        self._interval = interval
        self._events = events
        self._wakes_everyone = False
        self.peers: Sequence[UUID] = ()
        self.is_first = False
        # Set by each wake-up that is for this worker.
        self.woken = Signal()
        # Made when the transport starts.
        self.listener: WakeListener

    async def open(self) -> None:
        """Prepare nothing: notifications need no tables."""

    def start(self, worker: WorkerPort, tasks: asyncio.TaskGroup, stop: asyncio.Event) -> None:
        self.listener = WakeListener(self, self._database, worker, self._interval, self._events)
        # Behind a transaction pooler LISTEN is not possible: the worker polls.
        if not self._database.pooler:
            tasks.create_task(self.listener.run(stop))

    def rounds(self) -> list[Round]:
        return []

    def carries(self, lane: Lane) -> bool:
        return False

    def is_listening(self) -> bool:
        return self.listener.hears

    def is_reachable(self) -> bool:
        return True

    def heartbeat_sent(self, peers: Sequence[UUID], *, is_first: bool) -> None:
        self.peers = peers
        self.is_first = is_first
        self.listener.check_soon()

    def acked(self, job_ids: Sequence[UUID]) -> None:
        """Do nothing: no message waits for the end of a job."""

    def wake_everyone(self) -> None:
        self._wakes_everyone = True

    async def flush(self) -> None:
        if self._wakes_everyone:
            self._wakes_everyone = False
            await self._link.run(send(WAKE, EVERYONE))

    async def stop_receiving(self) -> None:
        """Do nothing: the worker stops its own claims."""

    def return_unfinished(self) -> None:
        """Do nothing: released jobs are claimable by all workers."""

    async def close(self) -> None:
        """Close nothing: the listener ends when the worker stops, and the link is the worker's."""


class WakeListener:
    """Listens for one worker, and knows from the worker's own notifications whether it hears."""

    def __init__(
        self,
        transport: PostgresTransport,
        database: Database,
        worker: WorkerPort,
        interval: float,
        events: Events,
    ) -> None:
        self._transport = transport
        self._worker = worker
        self._id = worker.registration.id
        self._silence_limit = 2 * interval + 1
        self._events = events
        self._loop = asyncio.get_running_loop()
        self._heard_at = 0.0
        self._passed_on_at = 0.0
        self.listener = Listener(
            database, {WAKE: self._on_wake, worker_channel(self._id): self._on_own_channel}
        )

    async def run(self, stop: asyncio.Event) -> None:
        """Listen until stopped."""
        await self.listener.run(stop)

    @property
    def hears(self) -> bool:
        """Whether it recently heard what this worker's own heartbeats send."""
        return self.listener.hears and self._loop.time() - self._heard_at < self._silence_limit

    def check_soon(self) -> None:
        """Check, a moment after a heartbeat, whether its notification arrived."""
        # A blocked loop reads its sockets late: let it read them first.
        self._loop.call_later(1, self._check)

    def _check(self) -> None:
        if self.listener.hears and not self.hears:
            self._events.notice(
                "warning", "notifications do not arrive; polling, and opening a new listener"
            )
            self.listener.reconnect()

    def _on_wake(self, payload: str) -> None:
        if not is_called(payload, self._id, self._transport.peers):
            return
        self._transport.woken.set()
        self._worker.wake(for_builtin_jobs=is_for_request(payload))
        if payload and self._worker.is_full():
            self._pass_on()

    def _pass_on(self) -> None:
        """Wake all other workers, since this one has no free slot; not too often."""
        now = self._loop.time()
        is_alone = len(self._transport.peers) <= 1
        if not is_alone and now - self._passed_on_at > PASS_ON_INTERVAL:
            self._passed_on_at = now
            self._transport.wake_everyone()

    def _on_own_channel(self, payload: str) -> None:
        """Take note of a heartbeat, or recheck a job that may have been cancelled."""
        self._heard_at = self._loop.time()
        if (attempt := named_attempt(payload)) is not None:
            self._worker.recheck(*attempt)
