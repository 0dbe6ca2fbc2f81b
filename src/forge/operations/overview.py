"""`app.overview()`: the state of the whole system, from a bounded number of rows."""

from forge.core.job_counts import BoundedCount
from forge.core.overview import OldestReady, Overview, SlotUse, WorkersByState
from forge.jobs.counts import EXACT_LIMIT, count_all
from forge.jobs.session import Sessions
from forge.store import jobs, pauses, queue_statistics, schedules, workers
from forge.store.schedules import FailingSchedules


async def read_overview(sessions: Sessions) -> Overview:
    """Read what an operator looks at first."""
    run = sessions.run
    known = await run(workers.totals(sessions.config.worker.dead_after.total_seconds()))
    oldest = await run(jobs.oldest_ready())
    letters = await run(queue_statistics.dead_letters())
    return Overview(
        at=known["at"],
        jobs=(await count_all(run, None)).by_status,
        oldest_ready=None if oldest is None else OldestReady(**oldest),
        slots=SlotUse(in_use=known["in_use"], total=known["total"]),
        workers=WorkersByState(
            alive=known["alive"],
            drained=known["drained"],
            draining=known["draining"],
            dead=known["dead"],
        ),
        dead_letters_waiting=sum(row["letters"] for row in letters),
        schedules_failing=_count(await run(schedules.failing(1, EXACT_LIMIT + 1))),
        pauses=await run(pauses.current()),
    )


def _count(found: FailingSchedules) -> BoundedCount:
    if found.schedules <= EXACT_LIMIT:
        return BoundedCount(found.schedules, "exact")
    return BoundedCount(EXACT_LIMIT, "at_least")
