"""Values that cannot be stored and errors that cannot be described: recorded, and no harm done."""

from __future__ import annotations

import pytest

from forge import Forge, InvalidPayload, JobDefinition
from tests.faults.apps import hostile
from tests.faults.apps.handlers import quick
from tests.faults.kit.crew import Crew
from tests.faults.kit.ledger import Ledger

# What comes back exactly as it was sent, though it is not what everybody's JSON takes.
LARGE_BUT_FINE = {"2**64": 2**64, "-2**64": -(2**64), "digits": 10**4000, "emoji": "\U0001f600"}


@pytest.mark.parametrize("what", hostile.VALUES)
async def test_what_cannot_be_stored_is_refused_at_dispatch(
    what: str, app: Forge, ledger: Ledger
) -> None:
    """Fault 33."""
    with pytest.raises(InvalidPayload):
        await app.dispatch(quick, {"value": hostile.VALUES[what]()})
    with pytest.raises(InvalidPayload):
        await app.dispatch_many(quick, [{}, {"value": hostile.VALUES[what]()}])

    assert await ledger.connection.fetchval("select count(*) from forge_jobs") == 0


async def test_large_numbers_come_back_as_they_were_sent(
    app: Forge, crew: Crew, ledger: Ledger
) -> None:
    """Fault 33: 2**64 is a number like any other."""
    job = await app.dispatch(hostile.echoing, {"value": LARGE_BUT_FINE})
    await crew.start()

    assert await job.result(timeout=30) == LARGE_BUT_FINE


@pytest.mark.parametrize(
    "kind",
    [hostile.returning, hostile.returning_in_thread, hostile.returning_in_process],
    ids=lambda kind: kind.name,
)
async def test_a_result_that_cannot_be_stored_fails_its_attempt(
    kind: JobDefinition[None, None], app: Forge, crew: Crew, ledger: Ledger
) -> None:
    """Fault 33: the worker lives, and works on."""
    sent = {what: await app.dispatch(kind, {"what": what}) for what in hostile.VALUES}
    worker = await crew.start()

    for what, job in sent.items():
        row = await ledger.until_status(job.id, "dead_letter")
        assert "the output" in row["last_error"], what
        assert (row["lease"], row["crashes"]) == (1, 0), what

    await _works_on(app, crew, ledger)
    assert worker.is_alive


@pytest.mark.parametrize(
    "kind",
    [hostile.raising, hostile.raising_in_thread, hostile.raising_in_process],
    ids=lambda kind: kind.name,
)
async def test_whatever_a_handler_raises_is_recorded(
    kind: JobDefinition[None, None], app: Forge, crew: Crew, ledger: Ledger
) -> None:
    """Faults 33 and 34: exceptions without a text, below Exception, with unspeakable names."""
    sent = {what: await app.dispatch(kind, {"what": what}) for what in hostile.ERRORS}
    worker = await crew.start()

    for what, job in sent.items():
        row = await ledger.until_status(job.id, "dead_letter")
        assert row["last_error"], what
        assert len(row["last_error"]) <= 500, what
        assert (row["lease"], row["crashes"]) == (1, 0), what
        (attempt,) = await ledger.attempts(job.id)
        assert attempt["exception"], what
        assert len(attempt["trace"]) <= 100_000, what

    await _works_on(app, crew, ledger)
    assert worker.is_alive


async def test_a_handler_that_calls_itself_for_ever_fails(
    app: Forge, crew: Crew, ledger: Ledger
) -> None:
    """Fault 34."""
    job = await app.dispatch(hostile.recursing_for_ever)
    await crew.start()

    await ledger.until_status(job.id, "dead_letter")

    (attempt,) = await ledger.attempts(job.id)
    assert attempt["exception"] == "RecursionError"
    await _works_on(app, crew, ledger)


async def test_a_progress_message_that_cannot_be_stored_is_made_storable(
    app: Forge, crew: Crew, ledger: Ledger
) -> None:
    """Fault 33."""
    job = await app.dispatch(hostile.noting)
    await crew.start()

    row = await ledger.until_status(job.id, "completed")

    assert row["progress_message"] == "ab?c"


async def _works_on(app: Forge, crew: Crew, ledger: Ledger) -> None:
    """All slots are free again: as many jobs as there are slots can wait for one another."""
    after = [await app.dispatch(quick) for _ in range(20)]
    rows = await ledger.until_final([job.id for job in after])
    assert {row["status"] for row in rows} == {"completed"}
