"""Handlers that hang are stopped at their timeout; those that hold up the loop are not dead."""

from __future__ import annotations

import pytest

from forge import Forge, JobDefinition
from tests.faults.apps.handlers import (
    hanging,
    hanging_in_process,
    hanging_in_thread,
    quick,
    stubborn,
)
from tests.faults.kit.crew import Crew
from tests.faults.kit.history import History, Kind
from tests.faults.kit.ledger import Ledger, told
from tests.faults.scenes import Scene


@pytest.mark.parametrize(
    "kind", [hanging, stubborn, hanging_in_thread, hanging_in_process], ids=lambda kind: kind.name
)
async def test_a_handler_that_hangs_is_stopped_at_its_timeout(
    kind: JobDefinition[None, None], app: Forge, crew: Crew, history: History, ledger: Ledger
) -> None:
    """Fault 9: its worker heartbeats all the while, and has its slot back afterwards."""
    job = await app.dispatch(kind)
    worker = await crew.start(max_concurrent=1)

    row = await ledger.until_status(job.id, "dead_letter")
    after = await app.dispatch(quick)
    await ledger.until_status(after.id, "completed")

    assert "longer than its timeout of 0:00:00.500000" in row["last_error"]
    assert (row["lease"], row["crashes"]) == (1, 0)
    assert told(history, job.id, Kind.FINISHED)
    assert worker.is_alive


async def test_a_worker_whose_loop_is_held_up_is_not_taken_for_dead(scene: Scene) -> None:
    """Fault 10: three times as long as a dead worker is waited for."""
    verdict = await scene.blocked_loop(seconds=3)

    assert not verdict.faults, verdict
    assert not verdict.duplicated
    (row,) = await scene.ledger.connection.fetch("select * from forge_jobs")
    assert (row["status"], row["lease"], row["crashes"]) == ("completed", 1, 0)
