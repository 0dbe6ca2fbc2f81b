"""A handler that blocks the loop: noticed, and not taken for dead."""

import time
from typing import Any

from forge import Forge, JobContext
from forge.core.event import Event, WorkerNotice
from tests.faults.kit.process import until
from tests.flow.engine.conftest import Work


async def test_a_loop_that_stood_still_is_warned_of(app: Forge, work: Work) -> None:
    notices: list[WorkerNotice] = []

    def note(event: Event) -> None:
        if isinstance(event, WorkerNotice):
            notices.append(event)

    @app.job
    async def block(ctx: JobContext, input: dict[str, Any]) -> None:
        time.sleep(1.5)  # noqa: ASYNC251 - blocking is what this is about

    app.events.listeners.append(note)
    await work(app)

    handle = await block.dispatch({})
    await handle.result(timeout=10)

    await until(lambda: any("stood still" in n.message for n in notices), 5, "the warning")
    assert (await handle.get()).crashes == 0
