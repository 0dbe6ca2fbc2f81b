"""Requests are carried out while every slot of a worker is taken, and while it drains."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from forge import Forge, JobHandle
from forge.builtin_jobs.definitions import canary_for
from forge.worker import builtin_claimer
from tests.apps import MakeApp, Work, fill_slots, waiting
from tests.faults.kit.process import until

# No test waits this long: what is carried out earlier was announced.
SELDOM = {"poll_interval": "10m", "idle_poll_interval": "10m"}
Request = Callable[[Forge, JobHandle], Any]


async def test_cancel_stops_a_job_that_holds_the_only_slot(make_app: MakeApp, work: Work) -> None:
    app = make_app(max_concurrent=1)
    _, (running,) = await fill_slots(app, work)

    await (await app.cancel(running.id)).result(10)

    assert (await running.get()).status == "cancelled"


@pytest.mark.parametrize(
    "request_of",
    [
        pytest.param(lambda app, job: app.delete(job.id), id="delete"),
        pytest.param(lambda app, job: app.run_now(job.id), id="run_now"),
        pytest.param(
            lambda app, job: app.reschedule(job.id, datetime.now(UTC) + timedelta(days=1)),
            id="reschedule",
        ),
        pytest.param(lambda app, job: app.dispatch(canary_for("any@mail")), id="canary"),
    ],
)
async def test_every_request_is_carried_out_by_a_full_worker_of_other_queues(
    make_app: MakeApp, work: Work, request_of: Request
) -> None:
    app = make_app(max_concurrent=2, queues=["mail"], **SELDOM)
    job = await waiting(app)
    await fill_slots(app, work, queue="mail")

    request = await request_of(app, job)

    await request.result(10)


async def test_a_request_of_which_no_notification_came_is_found(
    make_app: MakeApp, work: Work, psql: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(builtin_claimer, "INTERVAL", 0.05)
    app = make_app(max_concurrent=1, **SELDOM)
    _, (running,) = await fill_slots(app, work)

    await psql.execute(
        "insert into forge_jobs (job_type, queue, priority, input) "
        "values ('forge.cancel', 'forge', 100, jsonb_build_object('job_id', $1::uuid))",
        running.id,
    )

    await until(lambda: _has(running, "cancelled"), 10, "the job is cancelled")


async def test_many_requests_at_once_are_carried_out_beside_full_slots(
    make_app: MakeApp, work: Work
) -> None:
    app = make_app(max_concurrent=1, **SELDOM)
    jobs = [await waiting(app) for _ in range(3 * builtin_claimer.ROOM)]
    worker, (running,) = await fill_slots(app, work)

    requests = await asyncio.gather(*(app.cancel(job.id) for job in jobs))
    await asyncio.gather(*(request.result(10) for request in requests))

    assert worker.held.slots_taken == 1
    assert (await running.get()).status == "running"


async def test_a_request_takes_no_slot_from_ordinary_jobs(make_app: MakeApp, work: Work) -> None:
    app = make_app(max_concurrent=1)
    later = await waiting(app)
    worker, (running,) = await fill_slots(app, work)

    await (await app.cancel(running.id)).result(10)
    await (await app.run_now(later.id)).result(10)

    assert await later.result(10) == "ran"
    assert worker.held.beside_slots == 0


async def test_a_draining_worker_carries_out_requests(make_app: MakeApp, work: Work) -> None:
    app = make_app(max_concurrent=2, shutdown_grace="30s", **SELDOM)
    worker, (first, second) = await fill_slots(app, work)

    worker.drain()
    await until(worker.claimer.stopped.is_set, 10, "the worker drains")
    await (await app.cancel(first.id)).result(10)
    await (await app.cancel(second.id)).result(10)

    assert (await first.get()).status == (await second.get()).status == "cancelled"


async def _has(handle: JobHandle, status: str) -> bool:
    return (await handle.get()).status == status
