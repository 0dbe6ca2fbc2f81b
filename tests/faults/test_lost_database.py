"""A database that goes away in the midst of a handler's statement: no attempt is used up."""

from __future__ import annotations

import pytest

from forge import Forge
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

    assert (row["lease"], row["attempts"], row["crashes"]) == (2, 1, 0)
    assert [attempt["outcome"] for attempt in await ledger.attempts(job.id)] == ["lost"]
