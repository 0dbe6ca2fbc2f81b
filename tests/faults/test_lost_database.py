"""The database is lost in the middle of a handler's statement: no attempt is used."""

from __future__ import annotations

import pytest

from forge import Forge
from forge.core.outcome import MAX_LOSSES
from tests.faults.apps.handlers import asking
from tests.faults.kit.history import History
from tests.faults.kit.ledger import Gate, Ledger, until_started
from tests.faults.kit.process import until
from tests.faults.kit.worker_processes import Workers

END = (
    "select pg_terminate_backend(pid) from pg_stat_activity "
    "where datname = current_database() and query like '%pg_sleep(600)%' "
    "and pid <> pg_backend_pid()"
)


@pytest.mark.parametrize("in_transaction", [False, True], ids=["alone", "in a transaction"])
async def test_a_handler_whose_connection_was_terminated_uses_no_attempt(
    in_transaction: bool, app: Forge, workers: Workers, history: History, ledger: Ledger, gate: Gate
) -> None:
    """Fault 17: its only attempt runs when the database is back."""
    job = await app.dispatch(asking, {**gate.input, "in_transaction": in_transaction})
    await workers.start()
    await until_started(history, job.id)

    gate.open(lease=2)
    await until(lambda: ledger.connection.fetch(END), 30, "its statement was ended")
    row = await ledger.until_status(job.id, "completed")

    assert (row["lease"], row["attempts"], row["crashes"]) == (2, 1, 1)
    assert not row["suspect"]
    assert [attempt["outcome"] for attempt in await ledger.attempts(job.id)] == ["lost"]


async def test_a_job_that_loses_its_connection_too_often_is_dead_lettered(
    app: Forge, workers: Workers, history: History, ledger: Ledger, gate: Gate
) -> None:
    """Fault 17: in the end its only attempt is used."""
    job = await app.dispatch(asking, {**gate.input, "in_transaction": False})
    await ledger.connection.execute("update forge_jobs set crashes = $1", MAX_LOSSES)
    await workers.start()
    await until_started(history, job.id)

    await until(lambda: ledger.connection.fetch(END), 30, "its statement was ended")
    row = await ledger.until_status(job.id, "dead_letter")

    assert (row["lease"], row["attempts"], row["crashes"]) == (1, 1, MAX_LOSSES)
    assert [past["outcome"] for past in await ledger.attempts(job.id)] == ["dead_letter"]
    letter = await ledger.connection.fetchrow("select * from forge_dead_letters")
    assert (letter["attempt_count"], letter["crashes"]) == (1, MAX_LOSSES)
