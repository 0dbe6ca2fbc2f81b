"""Jobs that kill their process become dead letters, and the other jobs complete."""

from __future__ import annotations

import pytest

from forge import Forge
from tests.faults.apps.handlers import gated, poison, quick
from tests.faults.kit.history import History, Kind
from tests.faults.kit.ledger import Gate, Ledger, events_of, until_started
from tests.faults.kit.worker_processes import Workers

DEATHS = [
    ("exit", "exit code 7", 2),
    ("segmentation fault", "signal SIGSEGV", 1),
    ("kill", "signal SIGKILL", 1),
]


@pytest.mark.parametrize(("how", "written", "limit"), DEATHS)
async def test_poison_is_dead_lettered_and_other_jobs_complete(
    how: str,
    written: str,
    limit: int,
    app: Forge,
    workers: Workers,
    history: History,
    ledger: Ledger,
    gate: Gate,
) -> None:
    """Fault 8: the first crash kills the worker, each later one a child process."""
    neighbours = [await app.dispatch(gated, gate.input) for _ in range(3)]
    killer = await app.dispatch(poison, {**gate.input, "how": how})
    victim = await workers.start(crash_limit=limit)
    for job in (*neighbours, killer):
        await until_started(history, job.id)

    gate.open(lease=1)
    assert await victim.ended() != 0
    survivor = await workers.start(crash_limit=limit)
    gate.open()

    row = await ledger.until_status(killer.id, "dead_letter")
    assert (row["crashes"], row["lone_crashes"], row["attempts"]) == (1 + limit, limit, 0)
    assert row["last_error"] == f"its process died while it ran alone: {written}"
    outcomes = [attempt["outcome"] for attempt in await ledger.attempts(killer.id)]
    assert outcomes == ["lost", *["crashed"] * limit]
    letter = await ledger.connection.fetchrow("select * from forge_dead_letters")
    assert (letter["job_id"], letter["crashes"]) == (killer.id, 1 + limit)
    for row in await ledger.until_final([job.id for job in neighbours]):
        assert (row["status"], row["attempts"]) == ("completed", 1)
        assert row["lone_crashes"] == 0
    assert survivor.is_alive
    assert len(events_of(history, killer.id, Kind.STARTED)) == 1 + limit


async def test_a_worker_runs_other_jobs_beside_poison(
    app: Forge, workers: Workers, history: History, ledger: Ledger, gate: Gate
) -> None:
    """Fault 8: a suspect has its own process, but not its own worker."""
    killer = await app.dispatch(poison, {**gate.input, "how": "kill"})
    victim = await workers.start()
    await until_started(history, killer.id)
    victim.sigkill()
    survivor = await workers.start(crash_limit=1)
    await until_started(history, killer.id, lease=2)

    meanwhile = await app.dispatch(quick)
    await ledger.until_status(meanwhile.id, "completed")
    gate.open()

    await ledger.until_status(killer.id, "dead_letter")
    assert survivor.is_alive
    afterwards = await app.dispatch(quick)
    await ledger.until_status(afterwards.id, "completed")
