"""Values that cannot be stored and errors that cannot be printed do no harm."""

from __future__ import annotations

import pytest

from forge import Forge, InvalidPayload, JobDefinition
from tests.faults.apps import hostile
from tests.faults.apps.handlers import quick
from tests.faults.kit.ledger import Ledger
from tests.faults.kit.worker_processes import Workers

# Returned exactly as sent, although not every JSON parser accepts it.
LARGE_BUT_FINE = {"2**64": 2**64, "-2**64": -(2**64), "digits": 10**4000, "emoji": "\U0001f600"}


@pytest.mark.parametrize("what", hostile.VALUES)
async def test_dispatch_rejects_values_that_cannot_be_stored(
    what: str, app: Forge, ledger: Ledger
) -> None:
    """Fault 33."""
    with pytest.raises(InvalidPayload):
        await app.dispatch(quick, {"value": hostile.VALUES[what]()})
    with pytest.raises(InvalidPayload):
        await app.dispatch_many(quick, [{}, {"value": hostile.VALUES[what]()}])

    assert await ledger.connection.fetchval("select count(*) from forge_jobs") == 0


async def test_large_numbers_are_returned_unchanged(
    app: Forge, workers: Workers, ledger: Ledger
) -> None:
    """Fault 33: 2**64 and above."""
    job = await app.dispatch(hostile.echoing, {"value": LARGE_BUT_FINE})
    await workers.start()

    assert await job.result(timeout=30) == LARGE_BUT_FINE


@pytest.mark.parametrize(
    "definition",
    [hostile.returning, hostile.returning_in_thread, hostile.returning_in_process],
    ids=lambda definition: definition.name,
)
async def test_a_result_that_cannot_be_stored_fails_the_attempt(
    definition: JobDefinition[None, None], app: Forge, workers: Workers, ledger: Ledger
) -> None:
    """Fault 33: the worker stays alive and continues."""
    sent = {what: await app.dispatch(definition, {"what": what}) for what in hostile.VALUES}
    worker = await workers.start()

    for what, job in sent.items():
        row = await ledger.until_status(job.id, "dead_letter")
        assert "the output" in row["last_error"], what
        assert (row["lease"], row["crashes"]) == (1, 0), what

    await _check_all_slots_free(app, workers, ledger)
    assert worker.is_alive


@pytest.mark.parametrize(
    "definition",
    [hostile.raising, hostile.raising_in_thread, hostile.raising_in_process],
    ids=lambda definition: definition.name,
)
async def test_every_exception_of_a_handler_is_recorded(
    definition: JobDefinition[None, None], app: Forge, workers: Workers, ledger: Ledger
) -> None:
    """Faults 33 and 34: exceptions without text, BaseException, module names that are no text."""
    sent = {what: await app.dispatch(definition, {"what": what}) for what in hostile.ERRORS}
    worker = await workers.start()

    for what, job in sent.items():
        row = await ledger.until_status(job.id, "dead_letter")
        assert row["last_error"], what
        assert len(row["last_error"]) <= 500, what
        assert (row["lease"], row["crashes"]) == (1, 0), what
        (attempt,) = await ledger.attempts(job.id)
        assert attempt["exception"], what
        assert len(attempt["trace"]) <= 100_000, what

    await _check_all_slots_free(app, workers, ledger)
    assert worker.is_alive


async def test_a_handler_with_endless_recursion_fails(
    app: Forge, workers: Workers, ledger: Ledger
) -> None:
    """Fault 34."""
    job = await app.dispatch(hostile.recursing_endlessly)
    await workers.start()

    await ledger.until_status(job.id, "dead_letter")

    (attempt,) = await ledger.attempts(job.id)
    assert attempt["exception"] == "RecursionError"
    await _check_all_slots_free(app, workers, ledger)


async def test_a_progress_message_that_cannot_be_stored_is_cleaned(
    app: Forge, workers: Workers, ledger: Ledger
) -> None:
    """Fault 33."""
    job = await app.dispatch(hostile.noting)
    await workers.start()

    row = await ledger.until_status(job.id, "completed")

    assert row["progress_message"] == "ab?c"


async def _check_all_slots_free(app: Forge, workers: Workers, ledger: Ledger) -> None:
    """Check that all slots are free: as many gated jobs as there are slots run at once."""
    after = [await app.dispatch(quick) for _ in range(20)]
    rows = await ledger.until_final([job.id for job in after])
    assert {row["status"] for row in rows} == {"completed"}
