"""Concurrent dispatches share one insert and one commit; each returns after its own commit."""

import asyncio
from collections import deque
from collections.abc import Awaitable
from copy import copy
from math import ceil
from typing import NamedTuple, Protocol, TypeVar

from forge.core.errors import DatabaseUnavailable, StatementRefused
from forge.jobs.prepare import PreparedJob
from forge.store import jobs
from forge.store.jobs import Dispatched
from forge.store.statement import Statement

# More rows in one insert gain little and delay the first of them.
MAX_ROWS = 500
MAX_BYTES = 1_000_000
# Inserts in progress per tenant: while one waits for its commit, the next is being sent. Jobs that
# arrive meanwhile go with the one after.
MAX_INSERTS = 2
# Jobs that wait for an insert. Further callers wait before their input is encoded.
MAX_WAITING = 10_000
MAX_WAITING_BYTES = 32_000_000

T = TypeVar("T")


class RunForTenant(Protocol):
    """Runs a statement in its own transaction, for a tenant or for an operator."""

    def __call__(self, statement: Statement[T], tenant: int | None, /) -> Awaitable[T]: ...


class WakeWorkers(Protocol):
    """Notifies workers of committed jobs."""

    def __call__(self, jobs: int = 1, *, is_request: bool = False) -> None: ...


class PendingJob(NamedTuple):
    """A job that waits for its commit."""

    job: PreparedJob
    size: int
    committed: "asyncio.Future[None]"


class TenantQueue:
    """The jobs of one tenant: a statement runs under the row security of one tenant."""

    __slots__ = ("inserts", "is_listed", "pending", "rows", "tenant")

    def __init__(self, tenant: int | None) -> None:
        self.tenant = tenant
        self.pending: deque[PendingJob] = deque()
        # How many inserts are in progress, and with how many rows.
        self.inserts = 0
        self.rows = 0
        # Whether it waits for its turn to start another one.
        self.is_listed = False

    @property
    def is_idle(self) -> bool:
        return not self.inserts and not self.pending


class DispatchBatcher:
    """Inserts the jobs of one event loop.

    A lone dispatch is sent at once. Dispatches that arrive during an insert share the next one.
    Tenants take turns, and the callers of one tenant are served in the order of their calls.
    """

    def __init__(self, run: RunForTenant, wake: WakeWorkers, max_inserts: int) -> None:
        """`max_inserts` limits the inserts of all tenants together, which each use a connection."""
        # Python 3.11 asks the operating system for each get_running_loop().
        self._loop = asyncio.get_running_loop()
        self._run = run
        self._wake = wake
        self._max_inserts = max(max_inserts, MAX_INSERTS)
        self._inserts = 0
        self._queues: dict[int | None, TenantQueue] = {}
        # Queues that can start an insert, in the order of their turns.
        self._ready: deque[TenantQueue] = deque()
        self._is_start_scheduled = False
        # Whether the last batch held several jobs: then more calls are about to arrive together.
        self._is_shared = False
        # The event loop itself keeps only weak references to tasks.
        self._tasks: set[asyncio.Task[None]] = set()
        # The jobs that wait for an insert, and the size of their inputs.
        self.waiting = 0
        self.waiting_bytes = 0
        self._admission = asyncio.Lock()
        self._has_room = asyncio.Event()

    @property
    def is_full(self) -> bool:
        """Whether a caller has to wait for `admit` before it encodes its input."""
        return self._has_no_room or self._admission.locked()

    @property
    def _has_no_room(self) -> bool:
        return self.waiting >= MAX_WAITING or self.waiting_bytes >= MAX_WAITING_BYTES

    async def admit(self) -> None:
        """Wait for room, one caller after the other, so that each sees what the last one added."""
        async with self._admission:
            while self._has_no_room:
                self._has_room.clear()
                await self._has_room.wait()

    async def insert(self, job: PreparedJob, tenant: int | None = None) -> Dispatched:
        """Insert one job, and return after its commit."""
        if not job.is_batchable:
            return await self._insert_alone(job, tenant)
        queue = self._queues.get(tenant)
        if queue is None:
            queue = self._queues[tenant] = TenantQueue(tenant)
        if queue.is_idle and not self._is_shared and self._inserts < self._max_inserts:
            self._count_insert(queue, 1)
            try:
                return await self._insert_alone(job, tenant)
            finally:
                self._end_insert(queue, 1)
        pending = PendingJob(job, len(job.payload), self._loop.create_future())
        self._enqueue(queue, pending)
        await pending.committed
        return Dispatched(job.id, is_new=True)

    async def close(self) -> None:
        """Reject the jobs that wait, and let the inserts in progress end."""
        error = DatabaseUnavailable("the app was closed; open it again")
        for queue in self._queues.values():
            _answer(queue.pending, error)
            queue.pending.clear()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _insert_alone(self, job: PreparedJob, tenant: int | None) -> Dispatched:
        (made,) = await self._run(job.statement(), tenant)
        self._wake(is_request=job.is_builtin)
        return made

    def _enqueue(self, queue: TenantQueue, pending: PendingJob) -> None:
        queue.pending.append(pending)
        self.waiting += 1
        self.waiting_bytes += pending.size
        self._list(queue)
        self._schedule_start()

    def _list(self, queue: TenantQueue) -> None:
        if queue.pending and queue.inserts < MAX_INSERTS and not queue.is_listed:
            queue.is_listed = True
            self._ready.append(queue)

    def _schedule_start(self) -> None:
        """Start inserts after all callers that run in this iteration of the event loop."""
        if self._ready and not self._is_start_scheduled:
            self._is_start_scheduled = True
            self._loop.call_soon(self._start_inserts)

    def _start_inserts(self) -> None:
        self._is_start_scheduled = False
        while self._ready and self._inserts < self._max_inserts:
            queue = self._ready.popleft()
            queue.is_listed = False
            batch = self._next_batch(queue)
            if batch:
                self._is_shared = len(batch) > 1
                self._count_insert(queue, len(batch))
                task = self._loop.create_task(self._insert(queue, batch))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
            self._list(queue)
            self._remove_if_idle(queue)
        if not self._has_no_room:
            self._has_room.set()

    def _next_batch(self, queue: TenantQueue) -> list[PendingJob]:
        """Take the jobs of the next insert, without those of cancelled callers."""
        batch: list[PendingJob] = []
        size = 0
        # Half of all, so that one insert is prepared while the other one is on the database: of
        # 1 and 99 rows, the first would be back at once and the process would wait for the second.
        max_rows = min(MAX_ROWS, ceil((len(queue.pending) + queue.rows) / MAX_INSERTS))
        while queue.pending and len(batch) < max_rows:
            if batch and size + queue.pending[0].size > MAX_BYTES:
                break
            pending = queue.pending.popleft()
            self.waiting -= 1
            self.waiting_bytes -= pending.size
            if not pending.committed.done():
                batch.append(pending)
                size += pending.size
        return batch

    def _count_insert(self, queue: TenantQueue, rows: int) -> None:
        queue.inserts += 1
        queue.rows += rows
        self._inserts += 1

    def _end_insert(self, queue: TenantQueue, rows: int) -> None:
        queue.inserts -= 1
        queue.rows -= rows
        self._inserts -= 1
        self._list(queue)
        self._remove_if_idle(queue)
        self._schedule_start()

    def _remove_if_idle(self, queue: TenantQueue) -> None:
        if queue.is_idle:
            del self._queues[queue.tenant]

    async def _insert(self, queue: TenantQueue, batch: list[PendingJob]) -> None:
        try:
            await self._insert_batch(queue.tenant, batch)
        finally:
            # A loop that ends cancels its tasks.
            for pending in batch:
                pending.committed.cancel()
            self._end_insert(queue, len(batch))

    async def _insert_batch(self, tenant: int | None, batch: list[PendingJob]) -> None:
        try:
            await self._run(_statement(batch), tenant)
        except StatementRefused as error:
            if len(batch) == 1:
                _answer(batch, error)
                return
            # One job is refused: halve the batch until it is alone, so that no other job fails.
            half = len(batch) // 2
            await self._insert_batch(tenant, batch[:half])
            await self._insert_batch(tenant, batch[half:])
        except Exception as error:
            _answer(batch, error)
        else:
            self._wake(len(batch), is_request=any(pending.job.is_builtin for pending in batch))
            _answer(batch, None)


def _statement(batch: list[PendingJob]) -> Statement[list[Dispatched]]:
    if len(batch) == 1:
        return batch[0].job.statement()
    return jobs.dispatch_each([pending.job.for_batch() for pending in batch])


def _answer(batch: "list[PendingJob] | deque[PendingJob]", error: Exception | None) -> None:
    for pending in batch:
        if pending.committed.done():
            continue  # its caller was cancelled
        if error is None:
            pending.committed.set_result(None)
        else:
            # Each caller raises an error of its own: raising changes the traceback of an error.
            pending.committed.set_exception(_copied(error))


def _copied(error: Exception) -> Exception:
    copied = copy(error)
    copied.__cause__ = error.__cause__
    return copied
