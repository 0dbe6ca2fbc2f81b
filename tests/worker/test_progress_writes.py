"""Notes: whatever happens on their way, what an attempt noted last arrives."""

import asyncio
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from forge import Config, Forge, JobContext, Retry
from tests.apps import FAST, Work
from tests.faults.kit.process import until
from tests.faults.kit.proxy import Mode, Proxy
from tests.worker import handlers

STEPS = 6
# Written ten times a second: enough for a report to fall into the midst of a write.
REPORTS_SEEN = 30


async def test_steps_of_a_child_process_are_seen_while_it_runs(
    app: Forge, work: Work, tmp_path: Path
) -> None:
    """Two reports in quick succession: the second is not left behind."""
    app.register(handlers.step)
    await work(app)
    handle = await handlers.step.dispatch({"folder": str(tmp_path), "steps": STEPS})

    seen: list[str] = []
    async for job in handle.updates():
        message = job.progress_message or ""
        if message.startswith("step") and message not in seen:
            seen.append(message)
            (tmp_path / message).touch()

    assert seen == [f"step {n}" for n in range(STEPS)]


async def test_a_thread_that_reports_without_a_pause_is_seen_all_the_while(
    app: Forge, work: Work
) -> None:
    enough = threading.Event()

    @app.job
    def hurry(ctx: JobContext) -> None:
        n = 0
        while not enough.is_set():
            n += 1
            ctx.progress(50, f"row {n}")

    await work(app)
    handle = await hurry.dispatch()

    seen: set[Any] = set()
    try:
        async with asyncio.timeout(30):
            async for job in handle.updates():
                seen.add(job.progress_message)
                if len(seen) >= REPORTS_SEEN:
                    enough.set()
    finally:
        enough.set()


async def test_a_note_that_met_a_broken_connection_is_written_with_the_next(
    database_url: str, work: Work, psql: Any
) -> None:
    noted, go_on = asyncio.Event(), asyncio.Event()
    async with await Proxy.open(database_url) as proxy:
        app = Forge(Config(worker=FAST), database_url=proxy.url())

        @app.job
        async def keep(ctx: JobContext) -> None:
            await noted.wait()
            ctx.progress(40, "kept")
            ctx.checkpoint = {"at": 7}
            await go_on.wait()

        worker = await work(app)
        handle = await keep.dispatch()
        await until(lambda: worker.runner.running, 10, "it runs")
        (attempt,) = worker.runner.running.values()

        proxy.mode = Mode.RESET
        noted.set()
        await until(lambda: attempt.context.note is None, 10, "the note was taken to be written")
        await until(lambda: proxy.network.refused >= 3, 10, "the connection could not be opened")
        proxy.mode = Mode.PASS

        async def is_written() -> bool:
            found = await psql.fetchrow(
                "select progress_message, checkpoint from forge_jobs where id = $1", handle.id
            )
            return tuple(found) == ("kept", '{"at": 7}')

        await until(is_written, 20, "the note is in the database")
        go_on.set()
        await handle.result(20)
        await app.close()


async def test_a_heartbeat_that_the_handler_gave_up_leaves_its_note_to_the_next_write(
    app: Forge, work: Work
) -> None:
    @app.job(retry=Retry(max_attempts=2, max_backoff="10ms"))
    async def resume(ctx: JobContext) -> Any:
        if ctx.checkpoint is None:
            ctx.checkpoint = {"page": 7}
            with suppress(TimeoutError):
                async with asyncio.timeout(0):
                    await ctx.heartbeat()
            raise ValueError("again")
        return ctx.checkpoint

    await work(app)

    assert await (await resume.dispatch()).result(20) == {"page": 7}
