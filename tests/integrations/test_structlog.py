"""Lines of structlog name the attempt that logs them."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
import structlog
from structlog.testing import LogCapture

from forge import Forge, JobContext
from forge.integrations.structlog import add_attempt
from tests.apps import Work

log = structlog.get_logger()


@pytest.fixture
def lines() -> Iterator[list[Any]]:
    capture = LogCapture()
    structlog.configure(processors=[add_attempt, capture])
    yield capture.entries
    structlog.reset_defaults()


@pytest.mark.parametrize("is_async", [True, False])
async def test_lines_of_a_handler_have_the_fields_of_its_attempt(
    app: Forge, work: Work, lines: list[Any], is_async: bool
) -> None:
    async def in_a_task() -> None:
        log.info("from a task", job_type="kept")

    if is_async:

        @app.job(name="pack")
        async def pack(ctx: JobContext) -> None:
            log.info("packing", item="lamp")
            await asyncio.create_task(in_a_task())

    else:

        @app.job(name="pack")
        def pack_in_a_thread(ctx: JobContext) -> None:
            log.info("packing", item="lamp")

    await work(app)
    job = await app.dispatch("pack", tenant_id=7)
    await job.result(timeout=30)
    log.info("outside")

    packing, *rest = lines
    assert packing == {
        "event": "packing",
        "log_level": "info",
        "item": "lamp",
        "job_id": str(job.id),
        "job_type": "pack",
        "attempt": 1,
        "crashes": 0,
        "tenant_id": 7,
    }
    assert [line.get("job_type") for line in rest] == ["kept", None][not is_async :]
