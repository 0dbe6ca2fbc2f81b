"""A handler that blocks the loop: reported, and the worker still counts as alive."""

import asyncio
import time
from typing import Any

import pytest

from forge import Forge, JobContext
from forge.core.events import Event, WorkerNotice
from tests.apps import Work
from tests.faults.kit.process import until


@pytest.fixture
def notices(app: Forge) -> list[WorkerNotice]:
    found: list[WorkerNotice] = []

    def note(event: Event) -> None:
        if isinstance(event, WorkerNotice):
            found.append(event)

    app.events.listeners.append(note)
    return found


async def test_a_loop_that_stood_still_is_warned_of(
    app: Forge, work: Work, notices: list[WorkerNotice]
) -> None:
    @app.job
    async def block(ctx: JobContext, input: dict[str, Any]) -> None:
        time.sleep(1.5)  # noqa: ASYNC251 - blocking is what this is about

    await work(app)

    handle = await block.dispatch({})
    await handle.result(timeout=10)

    await until(lambda: any("stood still" in n.message for n in notices), 5, "the warning")
    assert (await handle.get()).crashes == 0


async def test_the_warning_names_the_job_that_blocked_among_those_that_run(
    app: Forge, work: Work, notices: list[WorkerNotice]
) -> None:
    @app.job
    async def innocent(ctx: JobContext) -> None:
        await asyncio.sleep(60)

    @app.job
    async def culprit(ctx: JobContext) -> None:
        await asyncio.sleep(0)
        block()

    await work(app)
    await innocent.dispatch()

    handle = await culprit.dispatch()
    await handle.result(timeout=10)

    def warning() -> WorkerNotice | None:
        return next((n for n in notices if "event loop stood still" in n.message), None)

    await until(lambda: warning() is not None, 5, "the warning")
    found = warning()
    assert found is not None
    assert "in job type 'culprit' at test_blocked_loop.py:" in found.message
    assert found.detail["job_type"] == "culprit"
    assert found.detail["job_id"] == str(handle.id)
    assert found.detail["place"].endswith(" in block")


def block() -> None:
    time.sleep(1.5)
