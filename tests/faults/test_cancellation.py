"""Cancellation stops the right attempt and leaves no transaction open."""

from __future__ import annotations

import pytest

from forge import Forge, JobDefinition
from forge.store.notify import worker_channel
from tests.faults.apps.handlers import (
    gated,
    gated_in_process,
    gated_in_thread,
    hanging_in_transaction,
    quick,
    sleeping_in_transaction,
)
from tests.faults.kit.history import History, Kind
from tests.faults.kit.ledger import Gate, Ledger, events_of, until_started
from tests.faults.kit.process import until
from tests.faults.kit.worker_processes import Workers

OPEN_TRANSACTIONS = (
    "select count(*) from pg_stat_activity where datname = current_database() "
    "and (state like 'idle in transaction%' or query like '%pg_sleep(600)%') "
    "and pid <> pg_backend_pid()"
)


async def test_cancel_stops_a_running_job_and_no_other(
    app: Forge, workers: Workers, history: History, ledger: Ledger, gate: Gate
) -> None:
    """Fault 39: on the event loop, in a thread and in a child process."""
    definitions = (gated, gated_in_thread, gated_in_process)
    kept = [await app.dispatch(each, gate.input) for each in definitions]
    cancelled = [await app.dispatch(each, gate.input) for each in definitions]
    worker = await workers.start()
    for job in (*kept, *cancelled):
        await until_started(history, job.id)

    requests = [await job.cancel("no longer needed") for job in cancelled]
    await ledger.until_final([request.id for request in requests])
    for job in cancelled:
        await ledger.until_status(job.id, "cancelled")
    await until(lambda: _ended(history, cancelled[:2]), 30, "the cancelled handlers have ended")
    gate.open()

    for row in await ledger.until_final([job.id for job in kept]):
        assert (row["status"], row["lease"]) == ("completed", 1)
    for job in cancelled:
        row = await ledger.job(job.id)
        assert (row["status"], row["output"]) == ("cancelled", None)
        assert row["last_error"] == "no longer needed"
    worker.sigterm()
    assert await worker.ended() == 0


async def test_cancel_of_an_earlier_attempt_does_not_stop_the_current_one(
    app: Forge, workers: Workers, history: History, ledger: Ledger, gate: Gate
) -> None:
    """Fault 39: the cancellation names a lease that has ended."""
    job = await app.dispatch(gated, gate.input)
    first = await workers.start()
    await until_started(history, job.id)
    first.sigkill()
    second = await workers.start()
    await until_started(history, job.id, lease=2)

    channel = worker_channel(second.id)
    await ledger.connection.execute("select pg_notify($1, $2)", channel, f"{job.id.hex} 1")
    await ledger.until_beating(second.id, 3)
    gate.open()

    row = await ledger.until_status(job.id, "completed")
    assert row["lease"] == 2


async def test_a_cancelled_job_stays_cancelled_when_a_stale_attempt_finishes(
    app: Forge, workers: Workers, history: History, ledger: Ledger, gate: Gate
) -> None:
    """Fault 39: the attempt is replaced, the job is cancelled, and then the first attempt ends."""
    job = await app.dispatch(gated, gate.input)
    zombie = await workers.start()
    await until_started(history, job.id)
    zombie.sigstop()
    await workers.start()
    await until_started(history, job.id, lease=2)

    request = await job.cancel()
    await ledger.until_final([request.id])
    gate.open()
    zombie.sigcont()
    await zombie.until_reported("refused", job=job.id, lease=1)

    row = await ledger.job(job.id)
    assert (row["status"], row["output"]) == ("cancelled", None)
    assert not events_of(history, job.id, Kind.ACCEPTED)


@pytest.mark.parametrize(
    "definition",
    [sleeping_in_transaction, hanging_in_transaction],
    ids=lambda definition: definition.name,
)
async def test_a_handler_stopped_in_a_transaction_leaves_none_open(
    definition: JobDefinition[None, None],
    app: Forge,
    workers: Workers,
    history: History,
    ledger: Ledger,
) -> None:
    """Fault 40: it times out in a statement, or between two statements."""
    await ledger.connection.execute("create table effects (what text)")
    sent = [await app.dispatch(definition) for _ in range(15)]
    worker = await workers.start()

    rows = await ledger.until_final([job.id for job in sent])

    assert {row["status"] for row in rows} == {"dead_letter"}
    assert all("timeout" in row["last_error"] for row in rows)
    await until(lambda: _none(ledger), 10, "no transaction is open")
    assert await ledger.connection.fetchval("select count(*) from effects") == 0
    after = await app.dispatch(quick)
    await ledger.until_status(after.id, "completed")
    assert worker.is_alive


async def _none(ledger: Ledger) -> bool:
    return await ledger.connection.fetchval(OPEN_TRANSACTIONS) == 0


def _ended(history: History, jobs: list) -> bool:  # type: ignore[type-arg]
    return all(events_of(history, job.id, Kind.FINISHED) for job in jobs)
