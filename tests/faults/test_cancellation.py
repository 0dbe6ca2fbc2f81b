"""Cancelling: the attempt that is meant and no other, and no transaction left open."""

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
from tests.faults.kit.crew import Crew
from tests.faults.kit.history import History, Kind
from tests.faults.kit.ledger import Gate, Ledger, told, until_started
from tests.faults.kit.process import until

OPEN_TRANSACTIONS = (
    "select count(*) from pg_stat_activity where datname = current_database() "
    "and (state like 'idle in transaction%' or query like '%pg_sleep(600)%') "
    "and pid <> pg_backend_pid()"
)


async def test_a_running_job_is_cancelled_and_its_neighbours_go_on(
    app: Forge, crew: Crew, history: History, ledger: Ledger, gate: Gate
) -> None:
    """Fault 39: handlers of every kind."""
    kinds = (gated, gated_in_thread, gated_in_process)
    wanted = [await app.dispatch(kind, gate.input) for kind in kinds]
    unwanted = [await app.dispatch(kind, gate.input) for kind in kinds]
    worker = await crew.start()
    for job in (*wanted, *unwanted):
        await until_started(history, job.id)

    requests = [await job.cancel("nobody wants it") for job in unwanted]
    await ledger.until_final([request.id for request in requests])
    for job in unwanted:
        await ledger.until_status(job.id, "cancelled")
    await until(lambda: _ended(history, unwanted[:2]), 30, "the cancelled handlers have ended")
    gate.open()

    for row in await ledger.until_final([job.id for job in wanted]):
        assert (row["status"], row["lease"]) == ("completed", 1)
    for job in unwanted:
        row = await ledger.job(job.id)
        assert (row["status"], row["output"]) == ("cancelled", None)
        assert row["last_error"] == "nobody wants it"
    worker.sigterm()
    assert await worker.ended() == 0


async def test_word_about_an_earlier_attempt_does_not_stop_the_present_one(
    app: Forge, crew: Crew, history: History, ledger: Ledger, gate: Gate
) -> None:
    """Fault 39: the cancellation names a lease, and this one is over."""
    job = await app.dispatch(gated, gate.input)
    first = await crew.start()
    await until_started(history, job.id)
    first.sigkill()
    second = await crew.start()
    await until_started(history, job.id, lease=2)

    channel = worker_channel(second.id)
    await ledger.connection.execute("select pg_notify($1, $2)", channel, f"{job.id.hex} 1")
    await ledger.until_beating(second.id, 3)
    gate.open()

    row = await ledger.until_status(job.id, "completed")
    assert row["lease"] == 2


async def test_a_cancelled_job_stays_cancelled_when_its_zombie_finishes(
    app: Forge, crew: Crew, history: History, ledger: Ledger, gate: Gate
) -> None:
    """Fault 39: the attempt was replaced, the job cancelled, and then the first one ends."""
    job = await app.dispatch(gated, gate.input)
    zombie = await crew.start()
    await until_started(history, job.id)
    zombie.sigstop()
    await crew.start()
    await until_started(history, job.id, lease=2)

    request = await job.cancel()
    await ledger.until_final([request.id])
    gate.open()
    zombie.sigcont()
    await zombie.until_said("refused", job=job.id, lease=1)

    row = await ledger.job(job.id)
    assert (row["status"], row["output"]) == ("cancelled", None)
    assert not told(history, job.id, Kind.ACCEPTED)


@pytest.mark.parametrize(
    "kind", [sleeping_in_transaction, hanging_in_transaction], ids=lambda kind: kind.name
)
async def test_a_handler_stopped_inside_a_transaction_leaves_none_open(
    kind: JobDefinition[None, None], app: Forge, crew: Crew, history: History, ledger: Ledger
) -> None:
    """Fault 40: its time is over in a statement, or between two of them."""
    await ledger.connection.execute("create table effects (what text)")
    sent = [await app.dispatch(kind) for _ in range(15)]
    worker = await crew.start()

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
    return all(told(history, job.id, Kind.FINISHED) for job in jobs)
