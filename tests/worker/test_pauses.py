"""Paused types and queues: nothing that they cover is claimed, by any way to claim."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from forge import Forge, InvalidValue, JobContext, ScheduleContext, UnknownPause
from forge.core.events import Event, WorkerNotice
from forge.core.job import Job
from forge.store import jobs
from forge.store.connection.database import Database
from forge.store.connection.link import Link
from forge.store.jobs import Lane
from forge.worker.work_finder import ClaimRequest
from tests.apps import MakeApp, Work, waiting
from tests.faults.kit.process import until
from tests.store.placing import Psql, insert, registered

# No test waits this long: what is claimed earlier was found otherwise.
SELDOM = {"poll_interval": "10m", "idle_poll_interval": "10m"}


def add_types(app: Forge) -> None:
    for name, queue in (("export", "files"), ("mail", "mail")):

        @app.job(name=name, queue=queue)
        async def run(ctx: JobContext) -> str:
            return "ran"


@pytest.mark.parametrize(
    ("paused", "free"),
    [
        ({"type": "export"}, ["mail"]),
        ({"queue": "files"}, ["mail"]),
        ({"type": "export", "queue": "files"}, ["mail"]),
        ({"type": "export", "queue": "mail"}, ["export", "mail"]),
    ],
)
async def test_only_what_a_pause_covers_waits_until_it_is_resumed(
    app: Forge, work: Work, paused: dict[str, str], free: list[str]
) -> None:
    add_types(app)
    await app.pause(**paused, reason="the disk is full")
    handles = {name: await app.dispatch(name) for name in ("export", "mail")}
    await work(app)

    for name in free:
        assert await handles[name].result(20) == "ran"
    statuses = {name: (await handle.get()).status for name, handle in handles.items()}
    assert statuses == {name: "completed" if name in free else "pending" for name in handles}

    await app.resume(**paused)
    for handle in handles.values():
        assert await handle.result(20) == "ran"


async def test_a_pause_ends_at_its_time_without_any_write(
    make_app: MakeApp, work: Work, psql: "Psql[Any]"
) -> None:
    app = make_app(**SELDOM)
    add_types(app)
    pause = await app.pause("export", for_="1500ms", reason="one moment")
    handle = await app.dispatch("export")
    await work(app)

    assert await handle.result(20) == "ran"

    job = await handle.get()
    assert pause.until is not None
    assert job.started_at is not None
    assert job.started_at >= pause.until
    assert await app.pauses() == []
    assert await psql.fetchval("select count(*) from forge_pauses") == 1


async def test_resume_wakes_workers_that_poll_seldom(make_app: MakeApp, work: Work) -> None:
    app = make_app(**SELDOM)
    add_types(app)
    await app.pause("export", reason="broken")
    worker = await work(app)
    handle = await app.dispatch("export")
    await until(worker.transport.is_listening, 10, "it listens")
    await until(lambda: not worker.finder.lanes.next(), 10, "it has nothing to do")

    await app.resume("export")

    assert await handle.result(10) == "ran"


async def test_a_lane_that_was_surveyed_before_its_pause_is_not_claimed(
    database: Database, psql: "Psql[Any]", app: Forge
) -> None:
    worker = await registered(database)
    for job_type in ("export", "mail"):
        await insert(psql, job_type=job_type)
    lanes = await database.run(jobs.survey())
    await app.pause("export", reason="broken")

    def claim(lanes: list[Lane]) -> Any:
        places = [
            jobs.LaneCursor(lane.lane, datetime.min.replace(tzinfo=UTC), worker.id)
            for lane in lanes
        ]
        who = {"worker": worker.id, "incarnation": worker.incarnation}
        return jobs.claim(places, 10, start=True, lanes=lanes, **who)

    (export,) = [lane for lane in lanes if lane.job_type == "export"]
    alone = await database.run(claim([export]))
    across = await database.run(claim(lanes))

    assert alone == []
    assert [job.type for job in across] == ["mail"]


async def test_a_lane_that_is_guessed_without_a_survey_is_not_claimed(
    make_app: MakeApp, work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = make_app(**SELDOM)
    add_types(app)
    worker = await work(app)
    await until(worker.transport.is_listening, 30, "it listens")
    assert await (await app.dispatch("export")).result(30) == "ran"
    await app.pause("export", reason="broken")
    guesses: list[list[str]] = []
    claim = worker.finder.claim

    async def observed(request: ClaimRequest, link: Link) -> list[Job]:
        taken = await claim(request, link)
        if request.is_guess:
            guesses.append([job.type for job in taken])
        return taken

    monkeypatch.setattr(worker.finder, "claim", observed)
    handle = await app.dispatch("export")
    await until(lambda: guesses, 30, "it guesses that the new job is where the last one was")

    assert not any(guesses)
    assert (await handle.get()).status == "pending"
    await app.resume("export")
    assert await handle.result(30) == "ran"


async def test_paused_lane_is_due_when_the_pause_ends(
    database: Database, psql: "Psql[Any]", app: Forge
) -> None:
    for job_type in ("export", "mail", "other"):
        await insert(psql, job_type=job_type)
    await app.pause("export", reason="broken")
    await app.pause(queue="default", for_="1h", reason="an hour off")
    await app.pause("mail", for_="2h", reason="two hours off")

    due_in = {lane.job_type: lane.due_in for lane in await database.run(jobs.survey())}

    assert due_in["export"] == float("inf")
    assert 3500 < due_in["other"] <= 3600
    assert 7100 < due_in["mail"] <= 7200


async def test_jobs_that_were_fetched_ahead_are_released_with_their_attempt(
    make_app: MakeApp, work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    from forge.worker import held_work

    monkeypatch.setattr(held_work, "LONGEST_WAIT", 60.0)
    app = make_app(max_concurrent=1, batch_size=5)
    release = asyncio.Event()

    @app.job
    async def hold(ctx: JobContext) -> None:
        await release.wait()

    worker = await work(app)
    worker.held.mean_seconds = 0.01
    handles = [await app.dispatch("hold") for _ in range(4)]
    await until(lambda: len(worker.held.ahead) == 3, 10, "jobs wait in the worker")

    await app.pause("hold", reason="wait")

    await until(lambda: not worker.held.ahead, 10, "they are released")
    release.set()
    await handles[0].result(10)
    await until(lambda: not worker.held.all(), 10, "it holds nothing")

    async def are_released() -> bool:
        rest = [await handle.get() for handle in handles[1:]]
        return [(job.status, job.attempts, job.crashes) for job in rest] == [("pending", 0, 0)] * 3

    await until(are_released, 10, "they are pending with their attempt")


async def test_schedules_of_a_paused_type_do_not_run(app: Forge, work: Work) -> None:
    ran: list[str] = []

    for name in ("fetch", "report"):

        @app.schedule(name, every="1h")
        async def run(ctx: ScheduleContext) -> None:
            ran.append(ctx.schedule.type)

    await app.pause("fetch", reason="the feed is down")
    await app.pause("report", queue="default", reason="runs of schedules have no queue")
    for name in ("fetch", "report"):
        await app.schedules.ensure(name)
    await work(app)

    await until(lambda: "report" in ran, 20, "the free schedule has run")
    assert ran == ["report"]
    await app.resume("fetch")
    await until(lambda: "fetch" in ran, 20, "the resumed schedule has run")


async def test_requests_are_carried_out_whatever_is_paused(app: Forge, work: Work) -> None:
    handle = await waiting(app)
    await app.pause("waits", reason="broken")
    await work(app)

    await (await app.cancel(handle.id)).result(20)

    assert (await handle.get()).status == "cancelled"


async def test_a_second_pause_of_the_same_target_replaces_the_first(
    app: Forge, psql: "Psql[Any]"
) -> None:
    first = await app.pause("export", reason="broken", actor="ann")
    second = await app.pause("export", for_="2h", reason="until tonight", actor="bob")

    assert await app.pauses() == [second]
    assert second.pause_id != first.pause_id
    ended = await app.resume(pause_id=second.pause_id, reason="repaired", actor="cid")
    assert ended == second
    with pytest.raises(UnknownPause, match="there is no pause"):
        await app.resume(pause_id=first.pause_id)
    with pytest.raises(UnknownPause, match=r"type export is not paused; .*forge pauses"):
        await app.resume("export")
    events = await psql.fetch(
        "select event, actor, notes, detail from forge_audit_events order by id"
    )
    assert [tuple(row)[:3] for row in events] == [
        ("pause_added", "ann", "broken"),
        ("pause_added", "bob", "until tonight"),
        ("pause_removed", "cid", "repaired"),
    ]
    assert str(first.pause_id) in events[1]["detail"]


async def test_pauses_by_several_people_at_once_leave_one(app: Forge) -> None:
    made = await asyncio.gather(*(app.pause("export", reason=f"reason {n}") for n in range(8)))

    (left,) = await app.pauses()
    assert left in made


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"reason": "all"}, "a type, a queue or both"),
        ({"type": "forge.cancel", "reason": "no"}, "forge.cancel cannot be paused: built-in"),
        ({"queue": "forge", "reason": "no"}, "queue forge cannot be paused: built-in"),
        ({"type": "export", "reason": " "}, "needs a reason; explain"),
        ({"type": "export", "reason": "x", "for_": "soon"}, "for 'soon' is not a duration"),
        ({"type": "", "reason": "x"}, "type must be text"),
        (
            {"type": "export", "reason": "x", "until": datetime(2020, 1, 1, tzinfo=UTC)},
            "is in the past; give a later time",
        ),
        (
            {
                "type": "export",
                "reason": "x",
                "for_": "1h",
                "until": datetime.now(UTC) + timedelta(days=1),
            },
            "either `for` or `until`, not both",
        ),
    ],
)
async def test_a_pause_that_makes_no_sense_is_refused(
    app: Forge, given: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidValue, match=message):
        await app.pause(**given)

    assert await app.pauses() == []


async def test_an_unknown_type_is_paused_with_a_warning(app: Forge, psql: "Psql[Any]") -> None:
    await psql.execute("insert into forge_job_types (name) values ('export')")
    seen: list[Event] = []
    app.events.listeners.append(seen.append)

    await app.pause("exprot", queue="flies", reason="broken")

    (notice,) = seen
    assert isinstance(notice, WorkerNotice)
    assert "'exprot' is registered: did you mean 'export'?" in notice.message
    assert "no job type or worker names queue 'flies'" in notice.message


def test_app_sync_pauses_and_resumes(app: Forge) -> None:
    made = app.sync.pause("export", for_="1h", reason="broken")

    assert app.sync.pauses() == [made]
    assert app.sync.resume("export") == made
