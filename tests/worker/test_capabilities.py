"""Capabilities and queues: who runs what."""

import pytest

from forge import Forge, JobContext, JobHandle
from tests.apps import MakeApp, Work


async def test_a_job_that_needs_a_capability_waits_for_a_worker_that_has_it(
    make_app: MakeApp, work: Work
) -> None:
    plain, able = make_app(), make_app(capabilities=["general", "media"])
    _define(plain), _define(able)
    await work(plain)
    film = await plain.dispatch("render")
    await _settled(plain)
    assert (await film.get()).status == "pending"

    worker = await work(able)

    await film.result(10)
    assert (await film.get()).worker_id == worker.registration.id


async def test_a_worker_with_capabilities_also_takes_jobs_that_need_none(
    make_app: MakeApp, work: Work
) -> None:
    app = make_app(capabilities=["media"])
    _define(app)
    await work(app)

    assert await (await app.dispatch("ping")).result(10) == "pong"


@pytest.mark.parametrize("queues", [["side"], ["side", "other"]])
async def test_a_worker_serves_only_the_queues_it_was_told(
    make_app: MakeApp, work: Work, queues: list[str]
) -> None:
    app = make_app(queues=queues)
    _define(app)
    await work(app)
    elsewhere = await app.dispatch("ping")

    await (await app.dispatch("ping", queue="side")).result(10)
    await (await app.dispatch("ping", queue="side")).result(10)

    assert (await elsewhere.get()).status == "pending"


async def test_a_worker_that_was_told_nothing_serves_every_queue(
    make_app: MakeApp, work: Work
) -> None:
    app = make_app()
    _define(app)
    await work(app)

    for queue in ("default", "side", "späte queue"):
        assert await (await app.dispatch("ping", queue=queue)).result(10) == "pong"


async def test_a_worker_of_any_queue_carries_out_requests(make_app: MakeApp, work: Work) -> None:
    app = make_app(queues=["side"])
    _define(app)
    waiting: JobHandle = await app.dispatch("ping", delay="1h")
    await work(app)

    await (await waiting.cancel()).result(10)

    assert (await waiting.get()).status == "cancelled"


def _define(app: Forge) -> None:
    @app.job
    async def ping(ctx: JobContext) -> str:
        return "pong"

    @app.job(worker_capability="media", priority="critical")
    async def render(ctx: JobContext) -> None: ...


async def _settled(app: Forge) -> None:
    """Let the workers look at everything: a less urgent job is done after the more urgent."""
    await (await app.dispatch("ping", priority="background")).result(10)
