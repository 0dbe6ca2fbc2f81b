"""A database that goes away in the midst of a handler's statement: no attempt is used up."""

from __future__ import annotations

import pytest

from forge import Forge
from forge.core.outcome import MOST_LOSSES
from tests.faults.apps.handlers import asking
from tests.faults.kit.crew import Crew
from tests.faults.kit.history import History
from tests.faults.kit.ledger import Gate, Ledger, until_started
from tests.faults.kit.process import until

END = (
    "select pg_terminate_backend(pid) from pg_stat_activity "
    "where datname = current_database() and query like '%pg_sleep(600)%' "
    "and pid <> pg_backend_pid()"
)


@pytest.mark.parametrize("in_transaction", [False, True], ids=["alone", "in a transaction"])
async def test_a_handler_whose_connection_was_ended_has_its_attempt_back(
    in_transaction: bool, app: Forge, crew: Crew, history: History, ledger: Ledger, gate: Gate
) -> None:
    """Fault 17: it may be tried once, and is, when the database is there."""
    job = await app.dispatch(asking, {**gate.input, "in_transaction": in_transaction})
    await crew.start()
    await until_started(history, job.id)

    gate.open(lease=2)
    await until(lambda: ledger.connection.fetch(END), 30, "its statement was ended")
    row = await ledger.until_status(job.id, "completed")

    assert (row["lease"], row["attempts"], row["crashes"]) == (2, 1, 1)
    assert not row["suspect"]
    assert [attempt["outcome"] for attempt in await ledger.attempts(job.id)] == ["lost"]


async def test_a_statement_that_ends_its_server_every_time_comes_to_an_end(
    app: Forge, crew: Crew, history: History, ledger: Ledger, gate: Gate
) -> None:
    """Fault 17: it may be tried once, and that once is used up at last."""
    job = await app.dispatch(asking, {**gate.input, "in_transaction": False})
    await ledger.connection.execute("update forge_jobs set crashes = $1", MOST_LOSSES)
    await crew.start()
    await until_started(history, job.id)

    await until(lambda: ledger.connection.fetch(END), 30, "its statement was ended")
    row = await ledger.until_status(job.id, "dead_letter")

    assert (row["lease"], row["attempts"], row["crashes"]) == (1, 1, MOST_LOSSES)
    assert [past["outcome"] for past in await ledger.attempts(job.id)] == ["dead_letter"]
    letter = await ledger.connection.fetchrow("select * from forge_dead_letters")
    assert (letter["attempt_count"], letter["crashes"]) == (1, MOST_LOSSES)
