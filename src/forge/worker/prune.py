"""Deletes what has ended and is past its retention, in small steps."""

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from time import monotonic
from typing import Any, NamedTuple
from uuid import UUID

from forge.config.settings import RetentionConfig
from forge.core.job_statistics import HOUR, MINUTE, MINUTES_KEPT, ORIGIN, TENANT_STEP
from forge.store import audit, dead_letters, idempotency_keys, job_statistics, jobs
from forge.store.connection.link import Link
from forge.store.connection.waiting import within
from forge.store.statement import Statement

BATCH = 1000
# Steps of one round: after a full round, the next one follows a pause as long as the round took.
MAX_STEPS = 100
# Counts of dead letters that are summed up in one go.
MAX_COUNTS = 100_000
# How far behind the last merge of statistics the next one begins.
LATEST_COUNTS = timedelta(hours=1)
BEGINNING = UUID(int=0)


class Merge(NamedTuple):
    """Rows of statistics to merge: into which steps, and how long after their end, in seconds."""

    statement: Callable[[datetime, float, float, int], Statement[job_statistics.Merged]]
    step: float
    older_than: float


# Workers write no row of a step that ended 90 seconds ago.
AFTER_WRITES = 120.0
MERGES = (
    Merge(job_statistics.merge, MINUTE.total_seconds(), AFTER_WRITES),
    Merge(job_statistics.merge, HOUR.total_seconds(), MINUTES_KEPT.total_seconds()),
    Merge(job_statistics.merge_of_tenants, TENANT_STEP.total_seconds(), AFTER_WRITES),
    Merge(job_statistics.merge_of_tenants, HOUR.total_seconds(), MINUTES_KEPT.total_seconds()),
)
Prune = Callable[[float, int], Statement[list[Any]]]


class Pruner:
    """Walks the jobs in the order of their ids, and starts over where they are too recent."""

    interval = 60.0

    def __init__(
        self,
        link: Link,
        retention: RetentionConfig,
        *,
        batch: int = BATCH,
        most_steps: int = MAX_STEPS,
        most_counts: int = MAX_COUNTS,
    ) -> None:
        self._link = link
        self._retention = retention
        self._batch = batch
        self._most_steps = most_steps
        self._most_counts = most_counts
        # Before when statistics were merged.
        self._merged = dict.fromkeys(MERGES, ORIGIN)
        # Where the walks over ordinary ids and over ids of the future stand.
        self._after = {False: BEGINNING, True: BEGINNING}

    async def catch_up(self, may_go_on: Callable[[], bool], stop: asyncio.Event) -> int:
        """Prune round by round until nothing is overdue; returns how many jobs were deleted.

        Between two rounds it pauses as long as the first one took, so that pruning takes half of
        one connection's time at most.
        """
        total = 0
        while may_go_on():
            began = monotonic()
            gone, is_done = await self.prune()
            total += gone
            if is_done or await within(stop, monotonic() - began):
                break
        return total

    async def prune(self) -> tuple[int, bool]:
        """Delete one round's worth; returns how many jobs, and whether nothing overdue is left."""
        gone, is_done = await self._jobs()
        is_done &= await self._counts()
        is_done &= await self._statistics()
        for statement, keep in (
            (dead_letters.prune, self._retention.failed),
            (idempotency_keys.prune, self._retention.idempotency_keys),
            (audit.prune, self._retention.audit),
            (job_statistics.prune, self._retention.statistics),
            (job_statistics.prune_of_tenants, self._retention.statistics),
        ):
            is_done &= await self._repeat(statement, keep)
        return gone, is_done

    async def _jobs(self) -> tuple[int, bool]:
        completed = _seconds(self._retention.completed)
        failed = _seconds(self._retention.failed)
        if completed is None and failed is None:
            return 0, True
        gone, is_done = await self._walk(completed, failed, of_the_future=False)
        odd, odd_are_done = await self._walk(completed, failed, of_the_future=True)
        return gone + odd, is_done and (odd_are_done or not odd)

    async def _walk(
        self, completed: float | None, failed: float | None, *, of_the_future: bool
    ) -> tuple[int, bool]:
        gone = 0
        for _ in range(self._most_steps):
            step = await self._link.run(
                jobs.prune(
                    self._after[of_the_future],
                    self._batch,
                    completed=completed,
                    failed=failed,
                    of_the_future=of_the_future,
                )
            )
            gone += step["gone"]
            if step["looked_at"] < self._batch:
                self._after[of_the_future] = BEGINNING
                return gone, True
            self._after[of_the_future] = step["looked_until"]
        return gone, False

    async def _counts(self) -> bool:
        """Compact the counts of dead letters; return whether another run would gain little."""
        taken, kept = await self._link.run(dead_letters.compact(self._most_counts))
        # That many different causes keep as many rows, however often they are compacted.
        return taken < self._most_counts or kept > taken // 2

    async def _statistics(self) -> bool:
        """Merge what several writers counted, then minutes into hours; return whether all is."""
        is_done = True
        for merge, since in self._merged.items():
            for _ in range(self._most_steps):
                made, until = await self._link.run(
                    merge.statement(since, merge.older_than, merge.step, self._batch)
                )
                if made < self._batch:
                    # Nothing is written so late, except by a statement that waited for a lock.
                    self._merged[merge] = until - LATEST_COUNTS
                    break
            else:
                is_done = False
        return is_done

    async def _repeat(self, statement: Prune, keep: timedelta | None) -> bool:
        """Delete batches; return whether nothing overdue is left."""
        if keep is None:
            return True
        for _ in range(self._most_steps):
            gone = await self._link.run(statement(keep.total_seconds(), self._batch))
            if len(gone) < self._batch:
                return True
        return False


def _seconds(keep: timedelta | None) -> float | None:
    return None if keep is None else keep.total_seconds()
