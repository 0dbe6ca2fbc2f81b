"""Concurrent dispatches share one insert and one commit; each returns after its own commit."""

import asyncio
from collections import deque
from collections.abc import Awaitable
from copy import copy
from math import ceil
from typing import NamedTuple, Protocol, TypeVar

from forge.core.errors import DatabaseUnavailable, StatementRefused
from forge.jobs.admission import Admission
from forge.jobs.prepare import PreparedJob
from forge.store import jobs
from forge.store.connection.driver_errors import is_denied
from forge.store.jobs import Dispatched
from forge.store.statement import Statement

# More rows in one insert gain little and delay the first of them.
MAX_ROWS = 500
MAX_BYTES = 1_000_000
# Inserts in progress per tenant: while one waits for its commit, the next is being sent. Jobs that
# arrive meanwhile go with the one after.
MAX_INSERTS = 2
# What a row takes beside its input and auth.
ROW_BYTES = 500
CLOSED = "the app was closed; open it again"

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
    Tenants take turns, and the callers of one tenant are served in the order of their calls. Jobs
    that cannot share an insert have connections of their own, so that a slow one, such as a job
    whose key another transaction holds, does not delay the others.
    """

    def __init__(self, run: RunForTenant, wake: WakeWorkers, pool_size: int) -> None:
        """Each insert takes one of the `pool_size` connections."""
        # Python 3.11 asks the operating system for each get_running_loop().
        self._loop = asyncio.get_running_loop()
        self._run = run
        self._wake = wake
        self._max_inserts = max(min(max(pool_size // 2, MAX_INSERTS), pool_size - 1), 1)
        self._inserts = 0
        self._alone = asyncio.Semaphore(max(pool_size - self._max_inserts, 1))
        self._queues: dict[int | None, TenantQueue] = {}
        # Queues that can start an insert, in the order of their turns.
        self._ready: deque[TenantQueue] = deque()
        self._is_start_scheduled = False
        # Whether the last batch held several jobs: then more calls are about to arrive together.
        self._is_shared = False
        # The event loop itself keeps only weak references to tasks.
        self._tasks: set[asyncio.Task[None]] = set()
        self.admission = Admission(self._loop)

    async def insert(self, job: PreparedJob, tenant: int | None = None) -> Dispatched:
        """Insert one job, and return after its commit."""
        self.admission.check_open()
        if not job.is_batchable:
            return await self._insert_apart(job, tenant)
        queue = self._queues.get(tenant)
        if queue is None:
            queue = self._queues[tenant] = TenantQueue(tenant)
        if queue.is_idle and not self._is_shared and not self._ready and self._has_connection:
            self._count_insert(queue, 1)
            try:
                return await self._insert_alone(job, tenant)
            finally:
                self._end_insert(queue, 1)
        pending = PendingJob(job, _size(job), self._loop.create_future())
        self._enqueue(queue, pending)
        await pending.committed
        return Dispatched(job.id, is_new=True)

    async def close(self) -> None:
        """Reject the jobs that wait, and let the inserts in progress end."""
        self.admission.close(CLOSED)
        for queue in list(self._queues.values()):
            _answer(queue.pending, DatabaseUnavailable(CLOSED))
            while queue.pending:
                self.admission.remove(queue.pending.popleft().size)
        if self._tasks:
            await asyncio.wait(self._tasks)

    @property
    def _has_connection(self) -> bool:
        return self._inserts < self._max_inserts

    async def _insert_apart(self, job: PreparedJob, tenant: int | None) -> Dispatched:
        """Insert a job that cannot share an insert, on a connection that these jobs share."""
        size = _size(job)
        self.admission.add(size)
        try:
            await self._alone.acquire()
        finally:
            self.admission.remove(size)
        try:
            self.admission.check_open()
            return await self._insert_alone(job, tenant)
        finally:
            self._alone.release()

    async def _insert_alone(self, job: PreparedJob, tenant: int | None) -> Dispatched:
        (made,) = await self._run(job.statement(), tenant)
        self._wake(is_request=job.is_builtin)
        return made

    def _enqueue(self, queue: TenantQueue, pending: PendingJob) -> None:
        queue.pending.append(pending)
        self.admission.add(pending.size)
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
        while self._ready and self._has_connection:
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
            self.admission.remove(pending.size)
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
        # A queue that was removed between its last insert and its turn may have a successor.
        if queue.is_idle and self._queues.get(queue.tenant) is queue:
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
            if len(batch) == 1 or is_denied(error.__cause__):
                _answer(batch, error)
                return
            # One job is refused: halve the batch until it is alone, so that no other job fails.
            half = len(batch) // 2
            await self._insert_batch(tenant, batch[:half])
            await self._insert_batch(tenant, batch[half:])
        except Exception as error:
            _answer(batch, error)
        else:
            # First the answers: what is committed is never reported as an error.
            _answer(batch, None)
            self._wake(len(batch), is_request=any(pending.job.is_builtin for pending in batch))


def _size(job: PreparedJob) -> int:
    """Return about how many bytes the row of a job takes."""
    payload = job.payload if isinstance(job.payload, str) else job.payload.text
    # A character outside ASCII takes up to four bytes.
    size = len(payload) if payload.isascii() else 4 * len(payload)
    return size + len(job.new_job.auth or "") + ROW_BYTES


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
    try:
        copied = copy(error)
    except Exception:  # an error whose constructor copy() cannot call
        return error
    copied.__cause__ = error.__cause__
    return copied
