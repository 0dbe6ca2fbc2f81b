"""The answer to COMMIT is lost: one job, one completion, no forgotten claim."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from forge import Config, DatabaseUnavailable, Forge, JobHandle
from tests.faults.apps.handlers import failing, gated, quick
from tests.faults.kit.history import History, Kind
from tests.faults.kit.ledger import Gate, Ledger, events_of, until_started
from tests.faults.kit.link import Mode
from tests.faults.kit.process import until
from tests.faults.kit.proxy import Proxy
from tests.faults.kit.worker_processes import Workers

COUNT = "select count(*) from forge_jobs"
BLOCKED = "select count(*) from pg_locks where not granted and relation = 'forge_jobs'::regclass"


@pytest.fixture
async def proxied_app(proxy: Proxy) -> AsyncIterator[Forge]:
    """An app that reaches its database through the proxy."""
    async with Forge(Config(), database_url=proxy.url()) as app:
        yield app


async def test_a_dispatch_with_a_key_creates_one_job_when_its_answer_is_lost(
    proxied_app: Forge, proxy: Proxy, ledger: Ledger
) -> None:
    """Fault 21."""
    cut = proxy.cut_after_commit(matching="forge_take_keys")

    with pytest.raises(DatabaseUnavailable):
        await proxied_app.dispatch(quick, idempotency_key="order 7")
    again = await proxied_app.dispatch(quick, idempotency_key="order 7")

    assert cut.happened == 1
    assert again.deduplicated
    assert await ledger.connection.fetchval(COUNT) == 1
    assert (await ledger.job(again.id))["status"] == "pending"


async def test_a_dispatch_without_a_key_can_create_two_jobs_when_its_answer_is_lost(
    proxied_app: Forge, proxy: Proxy, ledger: Ledger
) -> None:
    """Fault 21: this is why keys exist."""
    cut = proxy.cut_after_commit(matching="insert into forge_jobs")

    with pytest.raises(DatabaseUnavailable):
        await proxied_app.dispatch(quick)
    await proxied_app.dispatch(quick)

    assert cut.happened == 1
    assert await ledger.connection.fetchval(COUNT) == 2


async def test_a_lost_answer_to_a_shared_insert_raises_in_each_of_its_callers(
    proxied_app: Forge, proxy: Proxy, ledger: Ledger
) -> None:
    """Fault 21: the other insert in progress is answered as usual."""
    await proxied_app.dispatch(quick)
    async with ledger.connection.transaction():
        await ledger.connection.execute("lock table forge_jobs in share mode")
        alone = asyncio.create_task(proxied_app.dispatch(quick))
        await _until_blocked(ledger, 1)
        cut = proxy.cut_after_commit(matching="unnest($1::uuid[], $2::text[])")
        together = [asyncio.create_task(proxied_app.dispatch(quick)) for _ in range(20)]
        await _until_blocked(ledger, 2)
    results = await asyncio.gather(alone, *together, return_exceptions=True)

    assert cut.happened == 1
    lost = [result for result in results if isinstance(result, DatabaseUnavailable)]
    assert len(lost) > 1
    assert len({id(error) for error in lost}) == len(lost)
    assert all(isinstance(result, JobHandle) for result in results if result not in lost)
    assert await ledger.connection.fetchval(COUNT) == 22


async def test_dispatches_without_a_database_raise_in_each_caller(
    proxied_app: Forge, proxy: Proxy, ledger: Ledger
) -> None:
    await proxied_app.dispatch(quick)
    proxy.mode = Mode.RESET

    results = await asyncio.gather(
        *(proxied_app.dispatch(quick) for _ in range(20)), return_exceptions=True
    )

    assert [type(result) for result in results] == [DatabaseUnavailable] * 20
    proxy.mode = Mode.PASS
    await proxied_app.dispatch(quick)
    assert await ledger.connection.fetchval(COUNT) == 2


async def test_a_completion_with_a_lost_answer_is_not_stale(
    app: Forge, workers: Workers, proxy: Proxy, history: History, ledger: Ledger, gate: Gate
) -> None:
    """Fault 21: the worker checks the row and finds its own completion."""
    job = await app.dispatch(gated, gate.input)
    worker = await workers.start(url=proxy.url())
    await until_started(history, job.id)
    cut = proxy.cut_after_commit(matching="set status = 'completed'")

    gate.open()
    await until(lambda: cut.happened, 30, "the answer was lost")
    after = await app.dispatch(quick)
    await ledger.until_status(after.id, "completed")

    row = await ledger.job(job.id)
    assert (row["status"], row["lease"], row["attempts"]) == ("completed", 1, 1)
    assert worker.reported("notice", message="acks wait for the database")
    worker.sigterm()
    assert await worker.ended() == 0
    assert not worker.reported("refused")
    assert len(events_of(history, job.id, Kind.STARTED)) == 1


async def test_a_completion_is_not_stale_when_its_check_is_lost_too(
    app: Forge, workers: Workers, proxy: Proxy, history: History, ledger: Ledger, gate: Gate
) -> None:
    """Fault 21: the network breaks again while the worker checks its ack."""
    job = await app.dispatch(gated, gate.input)
    worker = await workers.start(url=proxy.url())
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
    assert not worker.reported("refused")


async def test_a_failure_with_a_lost_answer_is_recorded_once(
    app: Forge, workers: Workers, proxy: Proxy, ledger: Ledger
) -> None:
    """Fault 21: the retry and the dead letter of a failing job."""
    cut = proxy.cut_after_commit(matching="insert into forge_dead_letters", times=2)
    job = await app.dispatch(failing)
    worker = await workers.start(url=proxy.url(), jobs=["failing"])

    row = await ledger.until_status(job.id, "dead_letter")
    worker.sigterm()
    assert await worker.ended() == 0

    assert cut.happened == 2
    assert (row["lease"], row["attempts"]) == (2, 2)
    outcomes = [attempt["outcome"] for attempt in await ledger.attempts(job.id)]
    assert outcomes == ["retry", "dead_letter"]
    assert await ledger.connection.fetchval("select count(*) from forge_dead_letters") == 1
    assert not worker.reported("refused")


async def test_a_claim_with_a_lost_answer_is_released(
    app: Forge, workers: Workers, proxy: Proxy, history: History, ledger: Ledger
) -> None:
    """Fault 21: the worker finds a job under its id that it does not have."""
    worker = await workers.start(url=proxy.url())
    cut = proxy.cut_after_commit(matching="set status = case when $5 then 'running'")
    job = await app.dispatch(quick)

    row = await ledger.until_status(job.id, "completed")

    assert cut.happened == 1
    assert (row["lease"], row["attempts"], row["crashes"]) == (2, 1, 0)
    assert [event.lease for event in events_of(history, job.id, Kind.STARTED)] == [2]
    assert worker.reported("notice", message="claims wait for the database")


async def _until_blocked(ledger: Ledger, count: int) -> None:
    """Wait until this many inserts wait for the lock of the test."""

    async def are_blocked() -> bool:
        return bool(await ledger.connection.fetchval(BLOCKED) == count)

    await until(are_blocked, 10, f"{count} inserts are blocked")
