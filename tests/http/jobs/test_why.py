"""Each reason why a job is not running is produced for real, in Python and over HTTP."""

import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest
from pydantic import TypeAdapter

from forge import Forge, JobContext, JobHandle, RateLimited
from forge.core.why import Reason, Why
from forge.store.connection.database import Database
from tests.apps import MakeApp, Work, fill_slots, waiting
from tests.faults.kit.process import until
from tests.http.conftest import MakeToken
from tests.http.job_client import code
from tests.store.placing import claim, registered

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "why.md"
TENANT = 7


@pytest.fixture
def app(make_app: MakeApp) -> Forge:
    """An app whose workers wait a second for the jobs that fill their slots."""
    return make_app(shutdown_grace="1s")


class Scene(NamedTuple):
    """What a scene is made with."""

    app: Forge
    work: Work
    database: Database


async def final(on: Scene) -> JobHandle:
    handle = await waiting(on.app, "0s", tenant_id=TENANT)
    await on.work(on.app)
    await handle.result(timeout=20)
    return handle


async def held_by_key(on: Scene) -> JobHandle:
    handle = await waiting(on.app, "0s", tenant_id=TENANT, idempotency_key="order 1")
    await on.work(on.app)
    await handle.result(timeout=20)
    return await waiting(on.app, "0s", tenant_id=TENANT, idempotency_key="order 1")


async def owner_silent(on: Scene) -> JobHandle:
    handle = await claimed(on)
    async with on.database.acquire() as connection:
        await connection.execute(
            "update forge_workers set last_heartbeat = now() - interval '1 minute'"
        )
    return handle


async def running(on: Scene) -> JobHandle:
    _, held = await fill_slots(on.app, on.work, tenant_id=TENANT)
    return held[0]


async def claimed(on: Scene) -> JobHandle:
    handle = await waiting(on.app, "0s", tenant_id=TENANT)
    worker = await registered(on.database, job_types=["waits"])
    await claim(on.database, worker, start=False)
    return handle


async def paused(on: Scene) -> JobHandle:
    await on.app.pause(queue="default", for_="2h", reason="tenant 8 floods us", actor="ann")
    return await waiting(on.app, "1h", tenant_id=TENANT)


async def retry_later(on: Scene) -> JobHandle:
    @on.app.job
    async def fail(ctx: JobContext) -> None:
        raise RateLimited("refused: token=abc123", retry_after="1h")

    await on.work(on.app)
    return await fail.dispatch(tenant_id=TENANT)


async def due_later(on: Scene) -> JobHandle:
    return await waiting(on.app, "1h", tenant_id=TENANT)


async def no_worker(on: Scene) -> JobHandle:
    return await waiting(on.app, "0s", tenant_id=TENANT)


async def no_worker_for_type(on: Scene) -> JobHandle:
    await registered(on.database, job_types=["other"])
    return await waiting(on.app, "0s", tenant_id=TENANT)


async def no_worker_for_queue(on: Scene) -> JobHandle:
    @on.app.job(worker_capability="gpu", queue="mail")
    async def train(ctx: JobContext) -> None: ...

    able = ["gpu"]
    await registered(on.database, job_types=["other"], queues=["mail"], capabilities=able)
    await registered(on.database, job_types=["train"], queues=["default"], hostname="near")
    return await train.dispatch(tenant_id=TENANT)


async def no_worker_for_capability(on: Scene) -> JobHandle:
    @on.app.job(worker_capability="gpu")
    async def train(ctx: JobContext) -> None: ...

    await registered(on.database, job_types=["train"], capabilities=["media"])
    return await train.dispatch(tenant_id=TENANT)


async def workers_draining(on: Scene) -> JobHandle:
    worker, _ = await fill_slots(on.app, on.work)
    worker.drain()
    return await on.app.dispatch("hold", tenant_id=TENANT)


async def jobs_ahead(on: Scene) -> JobHandle:
    await fill_slots(on.app, on.work)
    for _ in range(2):
        await on.app.dispatch("hold", tenant_id=8)
    return await on.app.dispatch("hold", tenant_id=TENANT)


async def no_free_slot(on: Scene) -> JobHandle:
    await fill_slots(on.app, on.work)
    return await on.app.dispatch("hold", tenant_id=TENANT)


async def next(on: Scene) -> JobHandle:
    await registered(on.database, job_types=["waits"])
    return await waiting(on.app, "0s", tenant_id=TENANT)


SCENES: dict[Callable[[Scene], Awaitable[JobHandle]], str] = {
    final: r"The job is completed since .* UTC; a final job never runs again: rerun it",
    held_by_key: r"holds the idempotency key 'order 1': a dispatch with this key returns this job",
    owner_silent: r"Its worker host \(pid 1\) is silent since .*: start one",
    running: r"It is running since .* UTC, attempt 1 of 3\.",
    claimed: r"Its worker host \(pid 1\) has claimed it",
    paused: r"The queue default is paused until .* UTC, since .* UTC by ann: tenant 8 floods us; ",
    retry_later: r"attempt 2 of 3, due at .* \(in 59 min\), because of: .*refused",
    due_later: r"It is scheduled for .* UTC \(in 59 min\)\.",
    no_worker: r"No worker is alive; start one\.",
    no_worker_for_type: r"nearest, host \(pid 1\), lacks its type; start a worker whose app",
    no_worker_for_queue: r"serves queue mail; the nearest, near .* its queue and its capability",
    no_worker_for_capability: r"has the capability gpu; .*; start a worker with --capability gpu",
    workers_draining: r"Every worker that could run it is draining",
    jobs_ahead: r"2 jobs are ahead of it in its lane; no job of its lane started|starts in",
    no_free_slot: r"waits for a free slot: all 10 are in use",
    next: r"It is the next of its lane; a worker starts it",
}


@pytest.mark.parametrize("make", SCENES, ids=lambda make: make.__name__)
async def test_each_reason_has_a_sentence_and_the_documented_facts(
    app: Forge,
    work: Work,
    database: Database,
    http: httpx.AsyncClient,
    token: MakeToken,
    make: Callable[[Scene], Awaitable[JobHandle]],
) -> None:
    reason = Reason(make.__name__)
    handle = await make(Scene(app, work, database))

    async def is_found() -> Why | None:
        why = await handle.why()
        return why if why.reason is reason else None

    # Heartbeats report slots and drains; retries follow an attempt.
    why = await until(is_found, 20, f"the reason is {reason}")
    path = f"/_api/jobs/{handle.id}/why"
    operator = await http.get(path, headers=token("staff"))
    tenant = await http.get(path, headers=token("user", tenant=TENANT))
    other = await http.get(path, headers=token("staff", tenant=8))

    assert re.search(SCENES[make], why.message), why.message
    assert why.status is (await handle.get()).status
    of_python = TypeAdapter(Why).dump_python(why, mode="json")
    assert _steady(operator.json()) == _steady(of_python)
    assert set(why.facts) <= set(_documented()[reason])
    assert tenant.json()["reason"] == reason
    # Other workers are for staff, and exact positions for operators.
    assert not tenant.json()["facts"].keys() & {"nearest_worker", "slots", "workers"}
    assert "pid 1" not in tenant.json()["message"]
    if reason is Reason.JOBS_AHEAD:
        assert why.facts["position"] == {"count": 3, "precision": "exact"}
        assert tenant.json()["facts"]["position"] == {"count": 10, "precision": "at_most"}
    if reason is Reason.PAUSED:
        assert "tenant 8" not in tenant.text
        assert tenant.json()["facts"].keys() == {"queue", "until", "paused_at"}
    if reason is Reason.RETRY_LATER:
        assert "abc123" not in operator.text + tenant.text
    assert code(other) == (404, "not_found")


def test_every_reason_is_documented_and_has_a_scene() -> None:
    assert [make.__name__ for make in SCENES] == [*Reason] == [*_documented()]


def _steady(answer: dict[str, object]) -> dict[str, object]:
    """Leave out what changes from one second to the next."""
    return {name: answer[name] for name in ("job_id", "status", "reason")} | {
        "facts": sorted(answer["facts"])  # type: ignore[call-overload]
    }


def _documented() -> dict[str, list[str]]:
    rows = [line.split("|") for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    return {row[1].strip(" `"): re.findall(r"`(\w+)`", row[3]) for row in rows}
