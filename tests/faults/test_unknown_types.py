"""A job of a type that a worker does not have waits for a worker that has it."""

from __future__ import annotations

from forge import Forge
from tests.faults.apps.handlers import newer, quick
from tests.faults.kit.ledger import Ledger
from tests.faults.kit.worker_processes import Workers


async def test_a_job_of_a_newer_build_waits_for_a_worker_of_that_build(
    app: Forge, workers: Workers, ledger: Ledger
) -> None:
    """Fault 32: the old worker neither touches the job nor is blocked by it."""
    old = await workers.start(jobs=["quick"])
    unknown = await app.dispatch(newer, priority="critical")
    known = [await app.dispatch(quick) for _ in range(20)]
    await ledger.until_final([job.id for job in known])

    row = await ledger.job(unknown.id)
    assert (row["status"], row["lease"], row["attempts"]) == ("pending", 0, 0)

    new = await workers.start()
    row = await ledger.until_status(unknown.id, "completed")
    assert (row["worker_id"], row["attempts"]) == (new.id, 1)
    assert old.is_alive
    assert not old.reported("notice", level="error")
