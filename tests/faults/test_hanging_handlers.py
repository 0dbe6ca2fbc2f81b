"""Hanging handlers stop at their timeout; a blocked event loop does not make a worker dead."""

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
from tests.faults.kit.history import History, Kind
from tests.faults.kit.ledger import Ledger, events_of
from tests.faults.kit.worker_processes import Workers
from tests.faults.scenarios import Scenario


@pytest.mark.parametrize(
    "definition",
    [hanging, stubborn, hanging_in_thread, hanging_in_process],
    ids=lambda definition: definition.name,
)
async def test_a_hanging_handler_is_stopped_at_its_timeout(
    definition: JobDefinition[None, None],
    app: Forge,
    workers: Workers,
    history: History,
    ledger: Ledger,
) -> None:
    """Fault 9: its worker keeps sending heartbeats, and the slot becomes free."""
    job = await app.dispatch(definition)
    worker = await workers.start(max_concurrent=1)

    row = await ledger.until_status(job.id, "dead_letter")
    after = await app.dispatch(quick)
    await ledger.until_status(after.id, "completed")

    assert "longer than its timeout of 0:00:00.500000" in row["last_error"]
    assert (row["lease"], row["crashes"]) == (1, 0)
    assert events_of(history, job.id, Kind.FINISHED)
    assert worker.is_alive


async def test_a_worker_with_a_blocked_loop_is_not_declared_dead(scenario: Scenario) -> None:
    """Fault 10: the loop is blocked for three times `dead_after`."""
    verdict = await scenario.blocked_loop(seconds=3)

    assert not verdict.faults, verdict
    assert not verdict.duplicated
    (row,) = await scenario.ledger.connection.fetch("select * from forge_jobs")
    assert (row["status"], row["lease"], row["crashes"]) == ("completed", 1, 0)
