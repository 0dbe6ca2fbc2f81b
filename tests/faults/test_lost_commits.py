"""COMMIT arrives and its answer does not: one job, one completion, nothing forgotten."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from forge import Config, DatabaseUnavailable, Forge
from tests.faults.apps.handlers import failing, gated, quick
from tests.faults.kit.crew import Crew
from tests.faults.kit.history import History, Kind
from tests.faults.kit.ledger import Gate, Ledger, told, until_started
from tests.faults.kit.process import until
from tests.faults.kit.proxy import Proxy

COUNT = "select count(*) from forge_jobs"


@pytest.fixture
async def unlucky(proxy: Proxy) -> AsyncIterator[Forge]:
    """An app that reaches its database through the proxy."""
    async with Forge(Config(), database_url=proxy.url()) as app:
        yield app


async def test_a_dispatch_with_a_key_is_made_once_though_its_answer_was_lost(
    unlucky: Forge, proxy: Proxy, ledger: Ledger
) -> None:
    """Fault 21."""
    cut = proxy.cut_after_commit(matching="forge_take_keys")

    with pytest.raises(DatabaseUnavailable):
        await unlucky.dispatch(quick, idempotency_key="order 7")
    again = await unlucky.dispatch(quick, idempotency_key="order 7")

    assert cut.happened == 1
    assert again.deduplicated
    assert await ledger.connection.fetchval(COUNT) == 1
    assert (await ledger.job(again.id))["status"] == "pending"


async def test_a_dispatch_without_a_key_may_be_made_twice_and_says_that_it_does_not_know(
    unlucky: Forge, proxy: Proxy, ledger: Ledger
) -> None:
    """Fault 21: the reason to have a key."""
    cut = proxy.cut_after_commit(matching="insert into forge_jobs")

    with pytest.raises(DatabaseUnavailable):
        await unlucky.dispatch(quick)
    await unlucky.dispatch(quick)

    assert cut.happened == 1
    assert await ledger.connection.fetchval(COUNT) == 2


async def test_a_completion_whose_answer_was_lost_is_not_taken_for_stale(
    app: Forge, crew: Crew, proxy: Proxy, history: History, ledger: Ledger, gate: Gate
) -> None:
    """Fault 21: it is asked again, and found to be done."""
    job = await app.dispatch(gated, gate.input)
    worker = await crew.start(url=proxy.url())
    await until_started(history, job.id)
    cut = proxy.cut_after_commit(matching="set status = 'completed'")

    gate.open()
    await until(lambda: cut.happened, 30, "the answer was lost")
    after = await app.dispatch(quick)
    await ledger.until_status(after.id, "completed")

    row = await ledger.job(job.id)
    assert (row["status"], row["lease"], row["attempts"]) == ("completed", 1, 1)
    assert worker.said("notice", message="acks wait for the database")
    worker.sigterm()
    assert await worker.ended() == 0
    assert not worker.said("refused")
    assert len(told(history, job.id, Kind.STARTED)) == 1


async def test_a_completion_is_not_taken_for_stale_though_even_the_question_was_lost(
    app: Forge, crew: Crew, proxy: Proxy, history: History, ledger: Ledger, gate: Gate
) -> None:
    """Fault 21: the network breaks again while the worker asks what became of its ack."""
    job = await app.dispatch(gated, gate.input)
    worker = await crew.start(url=proxy.url())
    await until_started(history, job.id)
    cut = proxy.cut_after_commit(matching="set status = 'completed'")
    again = proxy.cut_after_commit(matching="left join forge_attempts", times=2)

    gate.open()
    await until(lambda: again.happened == 2, 30, "the answer to the question was lost, too")
    after = await app.dispatch(quick)
    await ledger.until_status(after.id, "completed")

    assert cut.happened == 1
    worker.sigterm()
    assert await worker.ended() == 0
    assert not worker.said("refused")


async def test_a_failure_whose_answer_was_lost_is_recorded_once(
    app: Forge, crew: Crew, proxy: Proxy, ledger: Ledger
) -> None:
    """Fault 21: the retry and the dead letter of a job that always fails."""
    cut = proxy.cut_after_commit(matching="insert into forge_dead_letters", times=2)
    job = await app.dispatch(failing)
    worker = await crew.start(url=proxy.url(), jobs=["failing"])

    row = await ledger.until_status(job.id, "dead_letter")
    worker.sigterm()
    assert await worker.ended() == 0

    assert cut.happened == 2
    assert (row["lease"], row["attempts"]) == (2, 2)
    outcomes = [attempt["outcome"] for attempt in await ledger.attempts(job.id)]
    assert outcomes == ["retry", "dead_letter"]
    assert await ledger.connection.fetchval("select count(*) from forge_dead_letters") == 1
    assert not worker.said("refused")


async def test_a_claim_whose_answer_was_lost_is_given_back(
    app: Forge, crew: Crew, proxy: Proxy, history: History, ledger: Ledger
) -> None:
    """Fault 21: the worker finds a job under its name that it does not know."""
    worker = await crew.start(url=proxy.url())
    cut = proxy.cut_after_commit(matching="set status = case when $5 then 'running'")
    job = await app.dispatch(quick)

    row = await ledger.until_status(job.id, "completed")

    assert cut.happened == 1
    assert (row["lease"], row["attempts"], row["crashes"]) == (2, 1, 0)
    assert [event.lease for event in told(history, job.id, Kind.STARTED)] == [2]
    assert worker.said("notice", message="claims wait for the database")
