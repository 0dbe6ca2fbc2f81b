"""Drained workers: alive, idle but for requests, until they are resumed."""

import asyncio
from typing import Any
from uuid import UUID, uuid4

import pytest

from forge import Forge, JobContext, ScheduleContext, UnknownWorker, Worker
from forge.builtin_jobs.definitions import canary_for
from forge.store import workers
from forge.store.connection.database import Database
from tests.apps import MakeApp, Work, fill_slots
from tests.faults.kit.process import until
from tests.store.placing import Psql, registered


async def drain(app: Forge, worker: Worker) -> None:
    await app.workers.drain(worker.registration.id, reason="a new kernel", actor="ann")
    await until(lambda: worker.held.is_drained, 20, "it knows that it is drained")


async def test_a_drained_worker_claims_nothing_until_it_is_resumed(app: Forge, work: Work) -> None:
    ran: list[str] = []

    @app.job
    async def export(ctx: JobContext) -> str:
        return "ran"

    @app.schedule("fetch", every="1h")
    async def fetch(ctx: ScheduleContext) -> None:
        ran.append("fetch")

    worker = await work(app)
    await drain(app, worker)
    surveys = _count_surveys(worker)
    handle = await export.dispatch()
    await app.schedules.ensure("fetch")
    beats = worker.liveness.silence
    heard = beats._heard_at
    await until(lambda: beats._heard_at > heard, 20, "it sends heartbeats")

    assert (await handle.get()).status == "pending"
    assert (ran, surveys) == ([], [])
    assert (await app.workers.get(worker.registration.id)).state == "drained"

    await app.workers.resume(worker.registration.id)
    assert await handle.result(20) == "ran"
    await until(lambda: ran == ["fetch"], 20, "the schedule has run")


async def test_what_runs_goes_on_and_what_was_fetched_ahead_is_released(
    make_app: MakeApp, work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    from forge.worker import held_work

    monkeypatch.setattr(held_work, "LONGEST_WAIT", 60.0)
    app = make_app(max_concurrent=1, batch_size=5)
    release = asyncio.Event()

    @app.job
    async def hold(ctx: JobContext) -> str:
        await release.wait()
        return "done"

    worker = await work(app)
    worker.held.mean_seconds = 0.01
    handles = [await hold.dispatch() for _ in range(3)]
    await until(lambda: len(worker.held.ahead) == 2, 20, "jobs wait in the worker")
    shown = await app.workers.get(worker.registration.id)

    await drain(app, worker)
    release.set()

    assert [(held.kind, held.type, held.status) for held in shown.current] == [
        ("job", "hold", "running"),
        ("job", "hold", "claimed"),
        ("job", "hold", "claimed"),
    ]
    assert shown.current[0].id == handles[0].id
    assert await handles[0].result(20) == "done"

    async def are_released() -> bool:
        rest = [await handle.get() for handle in handles[1:]]
        return [(job.status, job.attempts, job.crashes) for job in rest] == [("pending", 0, 0)] * 2

    await until(are_released, 20, "they are pending with their attempt")


async def test_a_drained_worker_carries_out_requests_and_answers_no_canaries(
    make_app: MakeApp, work: Work
) -> None:
    app = make_app(shutdown_grace="200ms")
    worker, held = await fill_slots(app, work)
    await drain(app, worker)
    canary = await app.dispatch(canary_for("any"))

    await (await app.cancel(held[0].id)).result(20)
    await until(lambda: worker.held.slots_taken == 9, 20, "its handler was stopped")

    assert (await canary.get()).status == "pending"
    await app.workers.resume(worker.registration.id)
    await canary.result(20)


async def test_others_are_woken_instead_and_the_chores_stay(make_app: MakeApp, work: Work) -> None:
    apps = [make_app(heartbeat_interval="100ms") for _ in range(2)]
    for app in apps:

        @app.job(name="ping")
        async def ping(ctx: JobContext) -> str:
            return "pong"

    first, second = sorted(
        [await work(app) for app in apps], key=lambda worker: worker.registration.id
    )
    await until(lambda: first.is_first and len(_peers(second)) == 2, 20, "they know each other")

    await drain(apps[0], first)
    await until(lambda: _peers(second) == [second.registration.id], 20, "it is called alone")
    assert first.is_first
    assert not second.is_first

    await drain(apps[0], second)
    assert first.is_first


async def test_a_drain_survives_the_deletion_of_the_row_but_no_restart(
    database: Database, psql: "Psql[Any]", app: Forge, make_app: MakeApp, work: Work
) -> None:
    own_id = uuid4()
    drained = make_app(id=str(own_id), heartbeat_interval="100ms")
    worker = await work(drained)
    await drain(app, worker)

    await psql.execute("delete from forge_workers")

    async def is_back() -> tuple[Any, ...] | None:
        row = await psql.fetchrow("select drained_by, drain_reason from forge_workers")
        return tuple(row) if row else None

    assert await until(is_back, 20, "it made its row again") == ("ann", "a new kernel")
    await database.run(workers.register(worker.registration._replace(incarnation=uuid4())))
    assert await psql.fetchval("select drained_at from forge_workers") is None
    await psql.execute(  # so that the worker of this test goes on
        "update forge_workers set incarnation = $1", worker.registration.incarnation
    )


async def test_each_drain_and_resume_leaves_one_audit_event(
    app: Forge, database: Database, psql: "Psql[Any]"
) -> None:
    one, two = [(await registered(database)).id for _ in range(2)]

    await app.workers.drain(one, reason="a new kernel", actor="ann")
    await app.workers.drain(one, actor="bob")
    drained = await app.workers.drain_all(actor="ann")
    resumed = await app.workers.resume_all(reason="done", actor="ann")
    with pytest.raises(UnknownWorker, match="`forge workers` lists them"):
        await app.workers.drain(uuid4())

    assert (list(drained), set(resumed)) == ([two], {one, two})
    events = await psql.fetch(
        "select event, actor, notes, detail->>'worker_id' as worker from forge_audit_events"
    )
    drains = {tuple(row)[1:] for row in events if row["event"] == "worker_drained"}
    assert drains == {("ann", "a new kernel", str(one)), ("ann", None, str(two))}
    assert len(events) == 4
    assert [row["event"] for row in events].count("worker_resumed") == 2
    assert {row["actor"] for row in events} == {"ann"}
    assert {UUID(row["worker"]) for row in events} == {one, two}


def test_app_sync_drains_and_resumes(app: Forge) -> None:
    assert app.sync.workers.list() == []
    assert list(app.sync.workers.drain_all()) == []
    with pytest.raises(UnknownWorker):
        app.sync.workers.get(uuid4())


def _peers(worker: Worker) -> list[UUID]:
    transport: Any = worker.transport
    return list(transport.peers)


def _count_surveys(worker: Worker) -> list[int]:
    """Return a list that grows with each survey."""
    seen: list[int] = []
    survey = worker.finder._survey

    async def counted() -> None:
        seen.append(len(seen))
        await survey()

    worker.finder._survey = counted  # type: ignore[method-assign]
    return seen
