"""Jobs that kill their process: they end in the dead letters, and their neighbours finish."""

from __future__ import annotations

import pytest

from forge import Forge
from tests.faults.apps.handlers import gated, poison, quick
from tests.faults.kit.crew import Crew
from tests.faults.kit.history import History, Kind
from tests.faults.kit.ledger import Gate, Ledger, told, until_started

DEATHS = [
    ("exit", "exit code 7", 2),
    ("segmentation fault", "signal SIGSEGV", 1),
    ("kill", "signal SIGKILL", 1),
]


@pytest.mark.parametrize(("how", "written", "limit"), DEATHS)
async def test_poison_is_buried_and_its_neighbours_finish(
    how: str,
    written: str,
    limit: int,
    app: Forge,
    crew: Crew,
    history: History,
    ledger: Ledger,
    gate: Gate,
) -> None:
    """Fault 8: the first death takes the worker along, the next ones a child each."""
    neighbours = [await app.dispatch(gated, gate.input) for _ in range(3)]
    killer = await app.dispatch(poison, {**gate.input, "how": how})
    victim = await crew.start(crash_limit=limit)
    for job in (*neighbours, killer):
        await until_started(history, job.id)

    gate.open(lease=1)
    assert await victim.ended() != 0
    survivor = await crew.start(crash_limit=limit)
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
    assert len(told(history, killer.id, Kind.STARTED)) == 1 + limit


async def test_a_worker_runs_other_jobs_while_poison_runs_beside_it(
    app: Forge, crew: Crew, history: History, ledger: Ledger, gate: Gate
) -> None:
    """Fault 8: a suspect is alone in its process, not in its worker."""
    killer = await app.dispatch(poison, {**gate.input, "how": "kill"})
    victim = await crew.start()
    await until_started(history, killer.id)
    victim.sigkill()
    survivor = await crew.start(crash_limit=1)
    await until_started(history, killer.id, lease=2)

    meanwhile = await app.dispatch(quick)
    await ledger.until_status(meanwhile.id, "completed")
    gate.open()

    await ledger.until_status(killer.id, "dead_letter")
    assert survivor.is_alive
    afterwards = await app.dispatch(quick)
    await ledger.until_status(afterwards.id, "completed")
