"""Pruning: what is over and past its time is forgotten, in small steps."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

from forge.config import RetentionConfig
from forge.store import audit, dead_letters, idempotency_keys, jobs
from forge.store.link import Link
from forge.store.statement import Statement

BATCH = 1000
# Steps in one go: enough to keep up with a busy table, few enough to leave it room.
MOST_STEPS = 100
# Counts of dead letters that are summed up in one go.
MOST_COUNTS = 100_000
BEGINNING = UUID(int=0)
Prune = Callable[[float, int], Statement[list[Any]]]


class Pruner:
    """Walks the jobs in the order of their ids, and begins anew where they become too young."""

    interval = 60.0

    def __init__(
        self,
        link: Link,
        retention: RetentionConfig,
        *,
        batch: int = BATCH,
        most_steps: int = MOST_STEPS,
    ) -> None:
        self._link = link
        self._retention = retention
        self._batch = batch
        self._most_steps = most_steps
        self._after = BEGINNING

    async def prune(self) -> int:
        """Forget what is past its time; returns how many jobs went."""
        gone = await self._jobs()
        await self._link.run(dead_letters.compact(MOST_COUNTS))
        if self._retention.failed is not None:
            await self._repeat(dead_letters.prune, self._retention.failed)
        if self._retention.idempotency_keys is not None:
            await self._repeat(idempotency_keys.prune, self._retention.idempotency_keys)
        if self._retention.audit is not None:
            await self._repeat(audit.prune, self._retention.audit)
        return gone

    async def _jobs(self) -> int:
        completed = _seconds(self._retention.completed)
        failed = _seconds(self._retention.failed)
        if completed is None and failed is None:
            return 0
        gone = 0
        for _ in range(self._most_steps):
            step = await self._link.run(
                jobs.prune(self._after, self._batch, completed=completed, failed=failed)
            )
            gone += step["gone"]
            if step["looked_at"] < self._batch:
                self._after = BEGINNING
                break
            self._after = step["looked_until"]
        return gone

    async def _repeat(self, statement: Prune, keep: timedelta) -> None:
        for _ in range(self._most_steps):
            gone = await self._link.run(statement(keep.total_seconds(), self._batch))
            if len(gone) < self._batch:
                return


def _seconds(keep: timedelta | None) -> float | None:
    return None if keep is None else keep.total_seconds()
