"""Acks that the database refuses for a reason of its own: what a job came to is kept."""

import asyncio
from typing import Any

import pytest

from forge import Forge, JobContext
from forge.core.event import Event, WorkerNotice
from forge.worker import acker
from tests.faults.kit.process import until
from tests.flow.engine.conftest import working

# An internal error of the server; to a handler's output it has no relation.
BREAK = """
    create function break() returns trigger language plpgsql
    as $$ begin raise exception 'broken' using errcode = 'XX000'; end $$;
    create trigger break before update on forge_jobs for each row
    when (new.status in ('completed', 'dead_letter', 'retry')) execute function break()
"""


@pytest.mark.parametrize("ends_as", ["completed", "dead_letter"])
async def test_an_outcome_that_is_refused_for_now_is_written_later(
    ends_as: str, app: Forge, psql: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(acker, "PUT_OFF", 0.1)
    refusals: list[Event] = []
    app.events.listeners.append(
        lambda event: refusals.append(event) if _is_refusal(event) else None
    )
    is_broken, ran = asyncio.Event(), []

    @app.job(max_attempts=1)
    async def end(ctx: JobContext) -> str:
        await is_broken.wait()
        ran.append(ctx.lease)
        if ends_as == "dead_letter":
            raise ValueError("its own error")
        return "its result"

    async with working(app) as worker:
        handle = await end.dispatch()
        await until(lambda: len(worker.runner.running) == 1, 10, "it runs")
        await psql.execute(BREAK)
        is_broken.set()
        await until(lambda: len(refusals) > 1, 20, "its end was refused, and sent again")
        await psql.execute("drop trigger break on forge_jobs")
        job = await until(lambda: _final(handle), 20, "it is final")

    assert ran == [1]
    assert (job.status, job.attempts) == (ends_as, 1)
    assert (job.output, job.last_error) in [("its result", None), (None, "its own error")]


async def _final(handle: Any) -> Any:
    job = await handle.get()
    return job if job.is_final else None


def _is_refusal(event: Event) -> bool:
    return isinstance(event, WorkerNotice) and event.message.endswith("was refused")
