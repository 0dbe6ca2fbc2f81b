"""Killed workers: their jobs run again, and one outcome of each is accepted."""

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
from tests.faults.kit.history import History, Kind
from tests.faults.kit.ledger import Gate, Ledger, events_of, held_row, until_started
from tests.faults.kit.process import until
from tests.faults.kit.proxy import Mode, Proxy
from tests.faults.kit.worker_processes import Workers


@pytest.mark.parametrize(
    "definition", [gated, gated_in_thread, gated_in_process], ids=lambda j: j.name
)
async def test_a_job_whose_worker_is_killed_runs_again_elsewhere(
    definition: object, app: Forge, workers: Workers, history: History, ledger: Ledger, gate: Gate
) -> None:
    """Fault 1."""
    job = await app.dispatch(definition, gate.input)
    first = await workers.start()
    await until_started(history, job.id)
    second = await workers.start()

    first.sigkill()
    await until_started(history, job.id, lease=2)
    gate.open()

    row = await ledger.until_status(job.id, "completed")
    assert (row["lease"], row["attempts"], row["crashes"]) == (2, 1, 1)
    assert row["worker_id"] == second.id
    assert [attempt["outcome"] for attempt in await ledger.attempts(job.id)] == ["lost"]
    verdict = check(history.events(), await ledger.rows(), workers.halts)
    assert not verdict.faults.keys() - {"unexpected"}, verdict


async def test_no_job_is_lost_when_workers_are_killed_repeatedly(
    app: Forge, workers: Workers, history: History, ledger: Ledger, gate: Gate
) -> None:
    """Fault 1: jobs are in every stage when the worker is killed."""
    jobs = [await app.dispatch(gated, gate.input) for _ in range(40)]
    for job in jobs:
        history.dispatched(job.id)

    for _ in range(3):
        # Few at a time: each job that is running now runs later in a process of its own.
        worker = await workers.start(max_concurrent=2)
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
    await workers.start(max_concurrent=20)
    gate.open()

    rows = await ledger.until_final([job.id for job in jobs], timeout=60)
    assert {row["status"] for row in rows} == {"completed"}
    assert {row["attempts"] for row in rows} == {1}
    verdict = check(history.events(), await ledger.rows(), workers.halts)
    assert not verdict.faults, verdict


async def test_a_job_runs_again_when_its_worker_is_killed_before_the_ack(
    app: Forge,
    workers: Workers,
    history: History,
    ledger: Ledger,
    gate: Gate,
    database_url: str,
) -> None:
    """Fault 2: the handler has ended, but the ack never reaches the database."""
    job = await app.dispatch(gated, gate.input)
    async with await Proxy.open(database_url) as proxy:
        first = await workers.start(url=proxy.url())
        await until_started(history, job.id)

        proxy.set_mode(to_server=Mode.DROP)
        gate.open()
        await until(lambda: events_of(history, job.id, Kind.FINISHED), 30, "the handler has ended")
        first.sigkill()
        second = await workers.start()

        row = await ledger.until_status(job.id, "completed")
        assert (row["lease"], row["worker_id"]) == (2, second.id)
        assert len(events_of(history, job.id, Kind.ACCEPTED)) == 1


async def test_an_ack_that_reached_the_database_counts_after_its_worker_is_killed(
    app: Forge, workers: Workers, history: History, ledger: Ledger, gate: Gate, database_url: str
) -> None:
    """Fault 2: the ack waits for a lock when the worker is killed."""
    job = await app.dispatch(gated, gate.input)
    first = await workers.start()
    await until_started(history, job.id)
    second = await workers.start()

    async with held_row(database_url, job.id):
        gate.open()
        await until(ledger.has_lock_waiter, 30, "the ack waits for the row")
        first.sigkill()

    row = await ledger.until_status(job.id, "completed")
    assert (row["lease"], row["attempts"]) == (1, 1)
    assert len(events_of(history, job.id, Kind.STARTED)) == 1
    second.sigterm()
    assert await second.ended() == 0
    assert not second.reported("rescued")


async def test_child_processes_end_when_their_worker_is_killed(
    app: Forge, workers: Workers
) -> None:
    """Fault 64: the child process, and the process that its handler forked."""
    await app.dispatch(forking_in_process)
    worker = await workers.start()
    pids = (await worker.until_reported("forked"))["pids"]

    worker.sigkill()

    await until(lambda: not any(map(_runs, pids)), 20, f"{pids} have ended")


def _runs(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
