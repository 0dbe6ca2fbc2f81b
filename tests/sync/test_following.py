"""`app.sync`: following and rescheduling jobs without an event loop."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TypeVar

import pytest

from forge import Forge, JobFailed, ResultTimeout, Status
from forge.sync.app import SyncForge
from tests.apps import working
from tests.sync.conftest import broken

T = TypeVar("T")


async def test_results_and_updates_work_without_a_loop(app: Forge, sync: SyncForge) -> None:
    async with working(app):
        handle = await in_thread(sync.dispatch, "double", {"n": 21})
        result = await in_thread(handle.result, 30)
        updates = await in_thread(lambda: list(handle.updates()))

    assert result == 42
    assert [update.status for update in updates] == [Status.COMPLETED]


async def test_updates_end_with_the_job(app: Forge, sync: SyncForge) -> None:
    handle = await in_thread(sync.dispatch, "double", {"n": 21})
    updates = handle.updates()
    first = await in_thread(next, updates)

    async with working(app):
        rest = await in_thread(lambda: list(updates))

    assert first.status is Status.PENDING
    assert rest[-1].status is Status.COMPLETED


def test_updates_can_be_left_early(sync: SyncForge) -> None:
    handle = sync.dispatch("double", {"n": 1})

    updates = handle.updates()
    next(updates)
    updates.close()

    assert handle.get().status is Status.PENDING


async def test_a_failed_job_raises(app: Forge, sync: SyncForge) -> None:
    app.job(name="fails", max_attempts=1)(broken)
    async with working(app):
        handle = await in_thread(sync.dispatch, "fails", {"n": 1})

        with pytest.raises(JobFailed, match="no such thing"):
            await in_thread(handle.result, 30)


def test_a_result_is_awaited_no_longer_than_its_timeout(sync: SyncForge) -> None:
    handle = sync.dispatch("double", {"n": 1})

    with pytest.raises(ResultTimeout, match="goes on"):
        handle.result(timeout=0.01)


async def test_jobs_are_rescheduled_by_request(app: Forge, sync: SyncForge) -> None:
    at = datetime(2140, 1, 1, tzinfo=UTC)
    ids = [
        (await in_thread(lambda: sync.dispatch("double", {"n": 1}, delay="1h"))).id
        for _ in range(4)
    ]

    async with working(app):
        requests = [
            await in_thread(sync.cancel, ids[0]),
            await in_thread(sync.delete, ids[1]),
            await in_thread(sync.run_now, ids[2]),
            await in_thread(sync.reschedule, ids[3], at),
        ]
        for request in requests:
            await in_thread(request.result, 30)
        assert await in_thread(sync.handle(ids[2]).result, 30) == 2

    found = [await in_thread(sync.get, job_id) for job_id in ids]
    assert [job.status for job in found] == ["cancelled", "cancelled", "completed", "pending"]
    assert found[3].scheduled_at == at


async def in_thread(act: Callable[..., T], *args: Any) -> T:
    """Call from a thread without an event loop."""
    return await asyncio.to_thread(act, *args)
