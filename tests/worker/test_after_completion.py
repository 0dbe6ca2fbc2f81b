"""A handler that has completed its job in a transaction of its own, and is not done yet."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from forge import Forge, JobContext, UndecodablePayload
from forge.store.notify import CHANGES
from tests.apps import Work
from tests.faults.kit.process import until
from tests.worker import handlers
from tests.worker.early_completion import complete_early


async def test_who_waits_for_the_result_gets_what_the_handler_returns_afterwards(
    app: Forge, work: Work
) -> None:
    @app.job
    async def ping(ctx: JobContext) -> str:
        return "pong"

    handle, go_on = await complete_early(app, work)
    other = await ping.dispatch()
    await other.result(10)

    waiting = asyncio.create_task(handle.result(20))
    await asyncio.sleep(0)
    # All that is watched is looked at together: by now it was seen completed.
    assert await other.result(10) == "pong"
    assert not waiting.done()
    go_on.set()
    assert await waiting == "receipt"


async def test_updates_yield_the_job_at_once_and_end_with_its_output(
    app: Forge, work: Work
) -> None:
    handle, go_on = await complete_early(app, work)

    updates = handle.updates()
    first = await anext(updates)
    go_on.set()
    last = [record async for record in updates][-1]

    assert (first.status, first.output) == ("running", None)
    assert (last.status, last.output) == ("completed", "receipt")


async def test_followers_do_not_wait_for_the_output_of_a_handler_that_failed(
    app: Forge, work: Work, psql: Any
) -> None:
    @app.job
    async def pay(ctx: JobContext) -> str:
        async with ctx.complete_in_transaction():
            pass
        raise ValueError("after the commit")

    await work(app)
    handle = await pay.dispatch()

    assert await app.handle(handle.id).result(10) is None
    with pytest.raises(UndecodablePayload, match=r"\$: Input should be a valid string"):
        await handle.result(10)
    # A JSON null would stand for an output that is yet to come.
    assert await psql.fetchval("select output is null from forge_jobs")


async def test_it_is_not_stopped_for_a_job_that_is_no_longer_its_own(
    app: Forge, work: Work
) -> None:
    committed, go_on = asyncio.Event(), asyncio.Event()

    @app.job
    async def pay(ctx: JobContext) -> str:
        async with ctx.complete_in_transaction():
            pass
        ctx.progress(100, "completed, and not done yet")
        committed.set()
        await go_on.wait()
        return "receipt"

    worker = await work(app)
    handle = await pay.dispatch()
    await committed.wait()
    (attempt,) = worker.runner.running.values()
    await until(lambda: attempt.context.note is None, 10, "its late report was sent")

    # What is found twice counts.
    await worker.reconciler.reconcile()
    await worker.reconciler.reconcile()
    go_on.set()

    assert await handle.result(10) == "receipt"
    assert not attempt.context.cancelled


async def test_a_child_process_is_not_killed_for_it_either(
    app: Forge, work: Work, tmp_path: Path
) -> None:
    completed, gate = tmp_path / "completed", tmp_path / "gate"
    app.register(handlers.complete_and_linger)
    worker = await work(app)
    handle = await handlers.complete_and_linger.dispatch(
        {"completed": str(completed), "gate": str(gate)}
    )
    await until(completed.exists, 30, "it has completed")

    await worker.reconciler.reconcile()
    await worker.reconciler.reconcile()
    gate.touch()

    assert await handle.result(30) == "returned"


async def test_watchers_are_notified_of_the_end_without_a_poll(
    app: Forge, work: Work, psql: Any
) -> None:
    payloads: list[str] = []
    go_on = asyncio.Event()

    @app.job
    async def pay(ctx: JobContext) -> None:
        await go_on.wait()
        async with ctx.complete_in_transaction({"receipt": 7}):
            pass

    await psql.add_listener(
        CHANGES, lambda _conn, _pid, _channel, payload: payloads.append(payload)
    )
    await work(app)
    handle = await pay.dispatch()

    def times() -> int:
        return sum(handle.id.hex in payload for payload in payloads)

    await until(lambda: times() == 1, 10, "the start was notified")
    go_on.set()
    await until(lambda: times() == 2, 10, "the end was notified")


async def test_a_handler_is_not_stopped_while_its_completion_commits(
    app: Forge, work: Work, psql: Any
) -> None:
    """The next run of a schedule can be claimed before the answer to the commit arrives."""
    await psql.execute(
        """
        create table paid (id int);
        create function wait_at_commit() returns trigger language plpgsql as
            'begin perform pg_advisory_xact_lock(42); return null; end';
        create constraint trigger at_commit after insert on paid
            deferrable initially deferred for each row execute function wait_at_commit();
        """
    )

    @app.job
    async def pay(ctx: JobContext) -> str:
        async with ctx.complete_in_transaction() as conn:
            await conn.execute("insert into paid values (1)")
        return "paid"

    async def commits() -> bool:
        return bool(await psql.fetchval("select 1 from pg_locks where not granted limit 1"))

    worker = await work(app)
    await psql.execute("select pg_advisory_lock(42)")
    handle = await pay.dispatch()
    await until(commits, 10, "the commit waits")
    (attempt,) = worker.held.attempts()

    worker.held.running.let_go(attempt.job.id, attempt.job.lease)
    await psql.execute("select pg_advisory_unlock(42)")

    assert await handle.result(10) == "paid"
