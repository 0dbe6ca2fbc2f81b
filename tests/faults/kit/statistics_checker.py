"""Compares statistics with the rows' history, after workers were killed."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import asyncpg

from tests.faults.kit.worker_processes import WorkerProcess

# Jobs and attempts that ended, as their rows say: outcome, type, worker and time.
HISTORY = """
select 'completed' as outcome, job_type, worker_id, completed_at as at from forge_jobs
where status = 'completed'
union all
select 'failed', job_type, worker_id, failed_at from forge_jobs
where status in ('failed', 'dead_letter')
union all
select case past.outcome when 'retry' then 'retried' when 'released' then 'released'
                         else 'crashed' end,
       job_type, case when past.outcome <> 'lost' then past.worker_id end, past.ended_at
from forge_attempts as past join forge_jobs as job on job.id = past.job_id
where past.outcome in ('retry', 'released', 'lost', 'crashed')"""
STATISTICS = """
select job_type, sum(completed)::int as completed, sum(failed)::int as failed,
       sum(retried)::int as retried, sum(crashed)::int as crashed, sum(released)::int as released
from forge_statistics where queue <> 'forge' group by job_type"""


@dataclass(frozen=True)
class Comparison:
    """Events that statistics have too often, that they lack, and that they may lack."""

    too_many: dict[tuple[str, str], int]
    missing: dict[tuple[str, str], int]
    allowed: dict[tuple[str, str], int]
    total: int

    @property
    def faults(self) -> dict[str, Any]:
        lost = {
            key: (count, self.allowed.get(key, 0))
            for key, count in self.missing.items()
            if count > self.allowed.get(key, 0)
        }
        return {"too many": self.too_many, "lost": lost} if self.too_many or lost else {}


async def compare(
    connection: asyncpg.Connection, workers: Sequence[WorkerProcess], unwritten: float
) -> Comparison:
    """Compare; a killed worker may have lost what it counted in its last `unwritten` seconds."""
    epoch = time.time() - time.monotonic()
    killed = {
        worker.id: max(halt.monotonic for halt in worker.halts) + epoch
        for worker in workers
        if worker.halts and worker.returncode == -9
    }
    happened: dict[tuple[str, str], int] = {}
    allowed: dict[tuple[str, str], int] = {}
    events = await connection.fetch(HISTORY)
    for event in events:
        key = event["job_type"], event["outcome"]
        happened[key] = happened.get(key, 0) + 1
        # A lost attempt is counted by the worker that rescues its job, whichever that is.
        by = event["worker_id"]
        ends = killed.values() if by is None else [killed[by]] if by in killed else []
        at = event["at"].timestamp()
        allowed[key] = allowed.get(key, 0) + any(end - unwritten < at for end in ends)
    counted = {
        (row["job_type"], outcome): number
        for row in await connection.fetch(STATISTICS)
        for outcome, number in row.items()
        if outcome != "job_type"
    }
    difference = {
        key: counted.get(key, 0) - happened.get(key, 0) for key in counted.keys() | happened.keys()
    }
    return Comparison(
        {key: surplus for key, surplus in difference.items() if surplus > 0},
        {key: -surplus for key, surplus in difference.items() if surplus < 0},
        allowed,
        len(events),
    )
