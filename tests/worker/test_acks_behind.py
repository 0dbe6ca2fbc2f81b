"""Acks that are held up: what ended stays in memory, so that not much more may be begun."""

import asyncio
from typing import Any

import asyncpg
import pytest

from forge import JobContext
from tests.apps import MakeApp, Work
from tests.faults.kit.process import until

JOBS = 60
# Two slots and batches of two: ten unwritten at most, and what was under way by then.
MAX_BEGUN = 20


async def test_a_worker_whose_acks_wait_claims_no_more_until_they_are_written(
    make_app: MakeApp, work: Work, psql: Any, database_url: str
) -> None:
    app = make_app(max_concurrent=2, batch_size=2)
    gates = [asyncio.Event(), asyncio.Event()]
    begun: list[int] = []

    @app.job
    async def wait(ctx: JobContext, input: dict) -> None:
        await gates[input["gate"]].wait()

    @app.job
    async def count(ctx: JobContext, input: dict) -> None:
        begun.append(input["n"])

    locked = [await wait.dispatch({"gate": gate}) for gate in range(len(gates))]
    worker = await work(app)
    await until(lambda: len(worker.runner.running) == 2, 10, "both run")
    locker = await asyncpg.connect(database_url)
    async with locker.transaction():
        await locker.execute("select from forge_jobs for update")
        for stuck, gate in enumerate(gates, 1):
            gate.set()
            await until(lambda n=stuck: _waiting(psql, n), 10, "a connection for acks waits")
        await app.dispatch_many("count", ({"n": n} for n in range(JOBS)))
        await until(lambda: not worker.claimer.limits.may_claim(), 20, "the acks are behind")
        await until(lambda: not worker.runner.running, 10, "what was claimed has run")
        assert len(begun) <= MAX_BEGUN
    await locker.close()

    for handle in locked:
        await handle.result(20)
    await until(lambda: _all_completed(psql), 20, "all are done")
    assert sorted(begun) == list(range(JOBS))


async def test_many_completions_do_not_wait_for_many_that_are_being_written(
    make_app: MakeApp, work: Work, psql: Any, database_url: str
) -> None:
    app = make_app(max_concurrent=300, batch_size=300)
    gates = [asyncio.Event(), asyncio.Event()]

    @app.job
    async def wait(ctx: JobContext, input: dict) -> None:
        await gates[input["gate"]].wait()

    await app.dispatch_many(wait, [{"gate": n % 2} for n in range(300)])
    worker = await work(app)
    await until(lambda: len(worker.runner.running) == 300, 10, "all run")
    locker = await asyncpg.connect(database_url)
    async with locker.transaction():
        await locker.execute("select from forge_jobs for update")
        for written, gate in enumerate(gates, 1):
            gate.set()
            await until(lambda n=written: _waiting(psql, n), 10, "another write is on its way")
    await locker.close()
    await until(lambda: _all_completed(psql), 20, "all are done")


@pytest.mark.usefixtures("refusing")
async def test_an_output_that_the_database_refuses_does_not_hold_up_its_neighbours(
    make_app: MakeApp, work: Work, psql: Any
) -> None:
    app = make_app()

    @app.job(max_attempts=2)
    async def say(ctx: JobContext, input: dict) -> str:
        return input["word"]

    words = ["good", "bad", "good", "good"]
    await app.dispatch_many("say", ({"word": word} for word in words))
    # The refusal is reported as an error of this worker, which is expected here.
    worker = await work(app)
    listener = worker.events.listeners.pop()
    await until(lambda: _statuses(psql, {"completed": 3, "retry": 1}), 20, "each has its end")
    worker.events.listeners.append(listener)

    row = await psql.fetchrow("select last_error, attempts from forge_jobs where status = 'retry'")
    assert "the output cannot be stored" in row["last_error"]
    assert row["attempts"] == 1


@pytest.fixture
async def refusing(psql: Any) -> None:
    await psql.execute(
        """
        create function refuse() returns trigger language plpgsql as
        $$begin raise exception 'not this word'; end$$;
        create trigger refuse before update on forge_jobs for each row
        when (new.output = '"bad"') execute function refuse()
        """
    )


async def _waiting(psql: Any, count: int) -> bool:
    waiting = (
        "select count(*) from pg_stat_activity where datname = current_database() "
        "and wait_event_type = 'Lock'"
    )
    return bool(await psql.fetchval(waiting) == count)


async def _statuses(psql: Any, wanted: dict[str, int]) -> bool:
    found = await psql.fetch("select status, count(*) from forge_jobs group by status")
    return {row["status"]: row["count"] for row in found} == wanted


async def _all_completed(psql: Any) -> bool:
    left = "select count(*) from forge_jobs where status <> 'completed'"
    return bool(await psql.fetchval(left) == 0)
