"""Shutdown: no new claims; running jobs may end, and the rest is released."""

from __future__ import annotations

from forge import Forge
from tests.faults.apps.handlers import (
    gated,
    gated_in_process,
    gated_in_thread,
    quick,
    stuck_in_thread,
)
from tests.faults.kit.history import History, Kind
from tests.faults.kit.ledger import Gate, Ledger, events_of, until_started
from tests.faults.kit.process import until
from tests.faults.kit.proxy import Proxy
from tests.faults.kit.worker_processes import Workers


async def test_after_sigterm_running_jobs_end_and_none_is_claimed(
    app: Forge, workers: Workers, history: History, ledger: Ledger, gate: Gate
) -> None:
    """Fault 12: heartbeats continue for longer than `dead_after`."""
    running = await app.dispatch(gated, gate.input)
    worker = await workers.start()
    await until_started(history, running.id)
    rescuer = await workers.start(jobs=["quick"])

    worker.sigterm()
    await worker.until_reported("stopping")
    later = await app.dispatch(gated, gate.input)
    await ledger.until_beating(worker.id, 10)
    gate.open()

    assert await worker.ended() == 0
    row = await ledger.job(running.id)
    assert (row["status"], row["lease"], row["attempts"]) == ("completed", 1, 1)
    row = await ledger.job(later.id)
    assert (row["status"], row["lease"], row["attempts"]) == ("pending", 0, 0)
    assert not rescuer.reported("rescued")
    assert not await ledger.connection.fetch("select from forge_workers where id = $1", worker.id)


async def test_a_draining_worker_is_marked_in_its_row(
    app: Forge, workers: Workers, history: History, ledger: Ledger, gate: Gate
) -> None:
    """Fault 12."""
    running = await app.dispatch(gated, gate.input)
    worker = await workers.start()
    await until_started(history, running.id)

    worker.sigterm()
    await worker.until_reported("stopping")
    await ledger.until_beating(worker.id, 2)

    row = await ledger.connection.fetchrow("select * from forge_workers")
    assert (row["id"], row["draining"], row["running"]) == (worker.id, True, 1)


async def test_a_second_sigterm_releases_running_jobs(
    app: Forge, workers: Workers, history: History, ledger: Ledger, gate: Gate
) -> None:
    """Fault 13: no attempt is used, in any execution mode."""
    definitions = (gated, gated_in_thread, gated_in_process)
    running = [await app.dispatch(each, gate.input) for each in definitions]
    worker = await workers.start()
    for job in running:
        await until_started(history, job.id)

    worker.sigterm()
    await worker.until_reported("stopping", signals=1)
    worker.sigterm()

    assert await worker.ended() == 0
    for job in running:
        row = await ledger.job(job.id)
        assert (row["status"], row["attempts"], row["crashes"]) == ("pending", 0, 1)
        assert [past["outcome"] for past in await ledger.attempts(job.id)] == ["released"]
        assert not row["suspect"]
        assert [event.status for event in events_of(history, job.id, Kind.ACCEPTED)] == ["pending"]
    gate.open()
    await workers.start()
    for row in await ledger.until_final([job.id for job in running]):
        assert (row["status"], row["lease"], row["attempts"]) == ("completed", 2, 1)


async def test_running_jobs_are_released_when_the_grace_period_ends(
    app: Forge, workers: Workers, history: History, ledger: Ledger, gate: Gate
) -> None:
    """Fault 13: also a thread that cannot be stopped; it ends with its process."""
    stuck = await app.dispatch(stuck_in_thread)
    running = await app.dispatch(gated, gate.input)
    worker = await workers.start(shutdown_grace="500ms")
    for job in (stuck, running):
        await until_started(history, job.id)

    worker.sigterm()

    assert await worker.ended() == 0
    for job in (stuck, running):
        row = await ledger.job(job.id)
        assert (row["status"], row["attempts"], row["crashes"]) == ("pending", 0, 1)
        assert not row["suspect"]


async def test_a_claimed_job_that_never_arrived_is_released(
    app: Forge, workers: Workers, proxy: Proxy, ledger: Ledger
) -> None:
    """Faults 12 and 21: the answer to the claim is lost just before the shutdown."""
    worker = await workers.start(url=proxy.url())
    cut = proxy.cut_after_commit(matching="lease = lease + 1")
    job = await app.dispatch(quick)
    await until(lambda: cut.happened, 30, "the claim was committed and its answer lost")

    worker.sigterm()

    assert await worker.ended() == 0
    row = await ledger.job(job.id)
    assert (row["status"], row["lease"], row["attempts"]) == ("pending", 1, 0)
    assert row["crashes"] == 0


async def test_jobs_that_wait_for_a_slot_are_released_immediately(
    app: Forge, workers: Workers, history: History, ledger: Ledger, gate: Gate
) -> None:
    """Fault 12: jobs that were claimed ahead of a free slot are released during the drain."""
    worker = await workers.start(max_concurrent=2, batch_size=50)
    await app.dispatch_many("quick", ({} for _ in range(2000)))
    running = [await app.dispatch(gated, gate.input, priority="critical") for _ in range(2)]
    for job in running:
        await until_started(history, job.id)

    worker.sigterm()
    await worker.until_reported("stopping")
    await ledger.until_beating(worker.id, 5)

    owned = await ledger.connection.fetch(
        "select id from forge_jobs where status in ('claimed', 'running')"
    )
    assert {row["id"] for row in owned} == {job.id for job in running}
    gate.open()
    assert await worker.ended() == 0
    waiting = await ledger.connection.fetch(
        "select distinct status, attempts, crashes from forge_jobs where status <> 'completed'"
    )
    assert {tuple(row) for row in waiting} <= {("pending", 0, 0)}
