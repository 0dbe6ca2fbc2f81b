"""Bulk actions on jobs or dead letters, in slices, on any worker.

A slice is one transaction: it locks rows that still match, acts on them, and writes the place
behind them into the checkpoint, fenced by the lease. So a worker that is killed at any point, or
two workers that carry out the same request, lose no row and act on none twice.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol

from forge.core.errors import StatementRefused
from forge.core.job_counts import Precision
from forge.core.pace import PAUSE, SHORTEST_PAUSE, Pace
from forge.core.payload import encode
from forge.core.signals import Snooze
from forge.definitions.catalog import RunStatement
from forge.store import jobs
from forge.store.borrowed import run_on
from forge.store.bulk import Chosen, Id
from forge.store.jobs import AttemptUpdate

if TYPE_CHECKING:
    from forge.jobs.context import JobContext

# Rows in one transaction: more would keep their locks, and what waits for the disk, for too long.
SLICE = 200
# Seconds of rest after each second of work, which leaves ordinary jobs their share of the database.
REST = 1.0
# Seconds after which an attempt ends and another one continues, so that a worker can stop soon.
ATTEMPT = 2.0
# Rows that other transactions have locked and that are tried again, and for how many seconds at the
# end.
MAX_LOCKED = 1000
PATIENCE = 60.0
# Rows that the database refuses to change before the request stops, and errors that are reported.
MAX_FAILED = 1000
MAX_ERRORS = 5


@dataclass(frozen=True, slots=True)
class BulkOrder:
    """What a request says, whatever it is about."""

    action: str
    # As a progress message says it, such as `cancelled`.
    done: str
    # One row, such as `job`.
    row: str
    count: int
    precision: Precision
    # Rows per second; None: as fast as ordinary jobs allow.
    rate: float | None


class Changed(NamedTuple, Generic[Id]):
    """How many rows of a slice were changed, and which ones other transactions have locked."""

    done: int
    busy: Sequence[Id]


class BulkTarget(Protocol[Id]):
    """What a bulk action changes: which rows come next, and how a slice of them is changed."""

    @property
    def order(self) -> BulkOrder:
        """What the request says."""

    # Whether there are too many rows to choose all of them at once; kept for the next attempt.
    is_crowded: bool

    def read_id(self, text: str) -> Id:
        """Read an id as the checkpoint has it."""

    async def start(self) -> tuple[Id, Id]:
        """Return the id before all rows, and the first of them."""

    async def choose(self, after: Id) -> Chosen[Id]:
        """Choose the next rows that match, in the order of their ids."""

    async def change(self, ids: Sequence[Id], run: RunStatement) -> Changed[Id]:
        """Lock the rows that still match, and act on them."""

    def share(self, first: Id, after: Id) -> float:
        """Return which share of the rows is done, by the ids alone."""


@dataclass(frozen=True)
class BulkProgress:
    """The state that one slice leaves for the next."""

    # The id before all rows that are left, and the first of all.
    after: str
    first: str
    done: int = 0
    # Rows that no longer matched, or were as wanted already.
    skipped: int = 0
    failed: int = 0
    errors: list[str] = field(default_factory=list)
    # Rows that another transaction had locked.
    locked: list[str] = field(default_factory=list)
    is_crowded: bool = False
    # Until when the rows that were due at the wanted rate have been taken.
    paced: float = 0.0
    # When no rows but the locked ones were left; None before.
    exhausted: float | None = None

    @property
    def seen(self) -> int:
        return self.done + self.skipped + self.failed

    def with_changed(self, count: int, changed: Changed[Any]) -> "BulkProgress":
        """Return the state after a slice of `count` rows."""
        return replace(
            self,
            done=self.done + changed.done,
            skipped=self.skipped + count - len(changed.busy) - changed.done,
            locked=[*self.locked, *map(str, changed.busy)],
        )

    @property
    def rest(self) -> str:
        """Say what was not changed."""
        counts = {"skipped": self.skipped, "failed": self.failed, "locked": len(self.locked)}
        return "".join(f", {count:,} {what}" for what, count in counts.items() if count)


async def carry_out(ctx: "JobContext", target: BulkTarget[Id]) -> dict[str, Any]:
    """Act on the next rows, for a short time."""
    work = await BulkWork.opened(ctx, target)
    until = time.monotonic() + ATTEMPT
    while (reason := work.reason_to_stop()) is None and not work.is_done:
        if time.monotonic() > until or not await work.advance():
            raise work.pause()
    return work.report(reason)


class BulkWork(Generic[Id]):
    """One attempt."""

    def __init__(self, ctx: "JobContext", target: BulkTarget[Id], so_far: BulkProgress) -> None:
        self._ctx = ctx
        self._target: BulkTarget[Id] = target
        self._order = target.order
        self._so_far = so_far
        # What was chosen and not acted on yet.
        self._chosen: Chosen[Id] = Chosen([], target.read_id(so_far.after))
        # One moment for the whole attempt: what falls due meanwhile is the next one's.
        self._now = time.time()

    @classmethod
    async def opened(cls, ctx: "JobContext", target: BulkTarget[Id]) -> "BulkWork[Id]":
        """Continue, or begin."""
        if ctx.checkpoint is not None:
            so_far = BulkProgress(**ctx.checkpoint)
            target.is_crowded = so_far.is_crowded
            return cls(ctx, target, so_far)
        after, first = await target.start()
        return cls(ctx, target, BulkProgress(str(after), str(first)))

    @property
    def is_done(self) -> bool:
        so_far = self._so_far
        if so_far.exhausted is None:
            return False
        return not so_far.locked or self._now - so_far.exhausted > PATIENCE

    def reason_to_stop(self) -> str | None:
        so_far = self._so_far
        if so_far.failed >= MAX_FAILED:
            return f"{so_far.failed:,} {self._order.row}s could not be changed: {so_far.errors[-1]}"
        return None

    async def advance(self) -> bool:
        """Act on the next slice; False if the next one is not due yet."""
        so_far = self._so_far
        if so_far.exhausted is not None or len(so_far.locked) >= MAX_LOCKED:
            return await self._retry_locked()
        if not (due := self._due()):
            return False
        began = time.monotonic()
        if not self._chosen.ids:
            await self._choose()
        if ids := self._chosen.ids[: min(due, SLICE)]:
            await self._act(ids)
            self._chosen = self._chosen._replace(ids=self._chosen.ids[len(ids) :])
        await asyncio.sleep(REST * (time.monotonic() - began))
        return True

    def pause(self) -> Snooze:
        """Return when to continue."""
        so_far = self._so_far
        if so_far.exhausted is not None or len(so_far.locked) >= MAX_LOCKED:
            return Snooze(timedelta(seconds=PAUSE))
        if self._order.rate is None:
            return Snooze(timedelta(seconds=SHORTEST_PAUSE))
        return Snooze(Pace(self._order.rate, so_far.paced).delay(time.time()))

    def report(self, reason: str | None) -> dict[str, Any]:
        so_far = self._so_far
        return {
            "action": self._order.action,
            "done": so_far.done,
            "skipped": so_far.skipped,
            "failed": so_far.failed,
            "locked": len(so_far.locked),
            "errors": so_far.errors,
            "stopped": reason,
        }

    def _due(self) -> int:
        """How many rows are due by now at the wanted rate."""
        rate = self._order.rate
        if rate is None:
            return SLICE
        pace = Pace(rate, self._so_far.paced).caught_up(self._now)
        self._so_far = replace(self._so_far, paced=pace.taken_until)
        return pace.due(self._now)

    async def _choose(self) -> None:
        """Choose the next rows, or find that there are none."""
        after = self._chosen.last_id
        if after is None:
            await self._remember(replace(self._so_far, exhausted=self._now))
            return
        self._chosen = await self._target.choose(after)
        if not self._chosen.ids and self._chosen.last_id is not None:
            await self._remember(replace(self._so_far, after=str(self._chosen.last_id)))

    async def _retry_locked(self) -> bool:
        """Try the rows again that were locked; False if most of them still are."""
        before = self._so_far.locked
        self._so_far = replace(self._so_far, locked=[])
        for start in range(0, len(before), SLICE):
            await self._act([self._target.read_id(id) for id in before[start : start + SLICE]])
        return len(self._so_far.locked) < len(before) / 2

    async def _act(self, ids: Sequence[Id]) -> None:
        """Act on rows; on each half of them where the database refuses to change one of them."""
        try:
            await self._commit(ids)
        except StatementRefused as error:
            if len(ids) > 1:
                middle = len(ids) // 2
                await self._act(ids[:middle])
                await self._act(ids[middle:])
            else:
                said = [*self._so_far.errors, f"{self._order.row} {ids[0]}: {error}"][-MAX_ERRORS:]
                failed = self._so_far.failed + 1
                await self._remember(replace(self._after(ids), failed=failed, errors=said))

    async def _commit(self, ids: Sequence[Id]) -> None:
        async with self._ctx.transaction() as connection:
            run = partial(run_on, connection)
            changed: Changed[Id] = await self._target.change(ids, run)
            so_far = self._after(ids).with_changed(len(ids), changed)
            if not await run(jobs.note([self._note(so_far)])):
                raise self._ctx.stale("bulk")
        self._so_far = so_far

    def _after(self, ids: Sequence[Id]) -> BulkProgress:
        """Return the state after these rows, whose results are not counted yet."""
        so_far = self._so_far
        after = str(max(self._target.read_id(so_far.after), ids[-1]))
        rate = self._order.rate
        paced = so_far.paced
        if rate is not None:
            paced = Pace(rate, paced).after(len(ids)).taken_until
        return replace(so_far, after=after, paced=paced, is_crowded=self._target.is_crowded)

    async def _remember(self, so_far: BulkProgress) -> None:
        """Write the checkpoint."""
        if not await self._ctx.run(jobs.note([self._note(so_far)])):
            raise self._ctx.stale("bulk")
        self._so_far = so_far

    def _note(self, so_far: BulkProgress) -> AttemptUpdate:
        percent, message = self._percent(so_far), self._message(so_far)
        text = encode(asdict(so_far))
        return AttemptUpdate(self._ctx.job_id, self._ctx.lease, percent, message, text)

    def _percent(self, so_far: BulkProgress) -> int:
        """Return how far it is: by count, or by the ids where the count is a bound."""
        order, read = self._order, self._target.read_id
        if order.precision != "at_least":
            return min(99, 100 * so_far.seen // max(1, order.count))
        share = self._target.share(read(so_far.first), read(so_far.after))
        return max(0, min(99, round(100 * share)))

    def _message(self, so_far: BulkProgress) -> str:
        order = self._order
        bound = {"exact": "", "at_least": "at least ", "estimate": "about "}[order.precision]
        return f"{so_far.done:,} of {bound}{order.count:,} {order.done}{so_far.rest}"
