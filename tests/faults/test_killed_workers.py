"""Workers that are killed: their jobs run again, and each has one accepted end."""

from __future__ import annotations

import psutil
import pytest

from forge import Forge
from tests.faults.apps.handlers import (
    forking_in_process,
    gated,
    gated_in_process,
    gated_in_thread,
)
from tests.faults.kit.checker import check
from tests.faults.kit.crew import Crew
from tests.faults.kit.history import History, Kind
from tests.faults.kit.ledger import Gate, Ledger, held_row, told, until_started
from tests.faults.kit.process import until
from tests.faults.kit.proxy import Mode, Proxy


@pytest.mark.parametrize("kind", [gated, gated_in_thread, gated_in_process], ids=lambda j: j.name)
async def test_a_job_whose_worker_is_killed_runs_again_elsewhere(
    kind: object, app: Forge, crew: Crew, history: History, ledger: Ledger, gate: Gate
) -> None:
    """Fault 1."""
    job = await app.dispatch(kind, gate.input)
    first = await crew.start()
    await until_started(history, job.id)
    second = await crew.start()

    first.sigkill()
    await until_started(history, job.id, lease=2)
    gate.open()

    row = await ledger.until_status(job.id, "completed")
    assert (row["lease"], row["attempts"], row["crashes"]) == (2, 1, 1)
    assert row["worker_id"] == second.id
    assert [attempt["outcome"] for attempt in await ledger.attempts(job.id)] == ["lost"]
    verdict = check(history.events(), await ledger.rows(), crew.halts)
    assert not verdict.faults.keys() - {"unexpected"}, verdict


async def test_nothing_is_lost_when_workers_are_killed_again_and_again(
    app: Forge, crew: Crew, history: History, ledger: Ledger, gate: Gate
) -> None:
    """Fault 1, with jobs in every stage at the moment of the kill."""
    jobs = [await app.dispatch(gated, gate.input) for _ in range(40)]
    for job in jobs:
        history.dispatched(job.id)

    for _ in range(3):
        # Few at a time: each that runs now is a suspect later, with a process of its own.
        worker = await crew.start(max_concurrent=2)
        await until(
            lambda pid=worker.pid: [
                event
                for event in history.events()
                if event.kind == Kind.STARTED and event.pid == pid
            ],
            30,
            "the worker has begun something",
        )
        worker.sigkill()
    await crew.start(max_concurrent=20)
    gate.open()

    rows = await ledger.until_final([job.id for job in jobs], timeout=60)
    assert {row["status"] for row in rows} == {"completed"}
    assert {row["attempts"] for row in rows} == {1}
    verdict = check(history.events(), await ledger.rows(), crew.halts)
    assert not verdict.faults, verdict


async def test_a_worker_killed_before_its_ack_arrives_has_its_job_run_again(
    app: Forge,
    crew: Crew,
    history: History,
    ledger: Ledger,
    gate: Gate,
    database_url: str,
) -> None:
    """Fault 2: the handler has ended, and nobody but its worker knows."""
    job = await app.dispatch(gated, gate.input)
    async with await Proxy.open(database_url) as proxy:
        first = await crew.start(url=proxy.url())
        await until_started(history, job.id)

        proxy.set_mode(to_server=Mode.DROP)
        gate.open()
        await until(lambda: told(history, job.id, Kind.FINISHED), 30, "the handler has ended")
        first.sigkill()
        second = await crew.start()

        row = await ledger.until_status(job.id, "completed")
        assert (row["lease"], row["worker_id"]) == (2, second.id)
        assert len(told(history, job.id, Kind.ACCEPTED)) == 1


async def test_an_ack_that_the_database_already_has_outlives_its_worker(
    app: Forge, crew: Crew, history: History, ledger: Ledger, gate: Gate, database_url: str
) -> None:
    """Fault 2: the ack waits for a lock while its worker is killed."""
    job = await app.dispatch(gated, gate.input)
    first = await crew.start()
    await until_started(history, job.id)
    second = await crew.start()

    async with held_row(database_url, job.id):
        gate.open()
        await until(ledger.somebody_waits, 30, "the ack waits for the row")
        first.sigkill()

    row = await ledger.until_status(job.id, "completed")
    assert (row["lease"], row["attempts"]) == (1, 1)
    assert len(told(history, job.id, Kind.STARTED)) == 1
    second.sigterm()
    assert await second.ended() == 0
    assert not second.said("rescued")


async def test_the_processes_of_an_isolated_handler_end_with_a_killed_worker(
    app: Forge, crew: Crew
) -> None:
    """Fault 64: the child itself, and what its handler forked."""
    await app.dispatch(forking_in_process)
    worker = await crew.start()
    pids = (await worker.until_said("forked"))["pids"]

    worker.sigkill()

    await until(lambda: not any(map(_runs, pids)), 20, f"{pids} have ended")


def _runs(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
