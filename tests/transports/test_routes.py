"""Priorities, capabilities and queues map to queues of SQS; slots decide how much is received."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from forge import Config, ConfigError, Forge, JobContext, Worker
from forge.config.transport import SqsConfig
from forge.store.outbox import OutboxEntry
from forge.transports.sqs.routes import Routes
from tests.apps import MakeApp, Work
from tests.faults.kit.process import until
from tests.transports.conftest import MakeQueue, transport, waiting

ROUTES = [
    {"queue_url": "urgent", "priorities": ["critical", "high"]},
    {"queue_url": "media", "capabilities": ["media"]},
    {"queue_url": "mail", "queues": ["mail"]},
]


def entry(**given: Any) -> OutboxEntry:
    plain = {"priority": 50, "queue": "default", "worker_capability": None}
    rest = dict.fromkeys(OutboxEntry._fields)
    return OutboxEntry(**(rest | plain | given))


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        ({}, "rest"),
        ({"priority": 75}, "urgent"),
        ({"priority": 100, "worker_capability": "media"}, "urgent"),
        ({"worker_capability": "media"}, "media"),
        ({"queue": "mail"}, "mail"),
        ({"queue": "forge"}, None),
        ({"queue": ""}, None),
    ],
)
def test_the_first_route_that_fits_counts(job: dict[str, Any], expected: str | None) -> None:
    routes = Routes(SqsConfig(queue_url="rest", routes=ROUTES))

    assert routes.queue_of(entry(**job)) == expected


def test_what_no_route_fits_is_found_in_postgres() -> None:
    routes = Routes(SqsConfig(routes=ROUTES))

    assert routes.queue_of(entry()) is None


@pytest.mark.parametrize(
    ("capabilities", "queues", "expected"),
    [
        ([], None, ["urgent", "mail", "rest"]),
        (["media", "gpu"], None, ["urgent", "media", "mail", "rest"]),
        ([], ["default"], ["urgent", "rest"]),
    ],
)
def test_a_worker_hears_the_queues_that_may_have_jobs_for_it(
    capabilities: list[str], queues: list[str] | None, expected: list[str]
) -> None:
    routes = Routes(SqsConfig(queue_url="rest", routes=ROUTES))

    assert routes.heard_by(capabilities, queues) == expected


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("[transport]\nkind = 'sqs'", r"\[transport.sqs\] with a queue_url"),
        ("[transport]\nkind = 'kafka'", "must be 'postgres' or 'sqs'"),
        ("[transport.sqs]\nregion = 'eu-west-1'", "must have an entry"),
        ("[transport.sqs]\nqueue_url = 'q'\nwait = '30s'", "from 1s to 20s, not 30s"),
        ("[transport.sqs]\nqueue_url = 'q'\nvisibility_timeout = '1s'", "from 3s to 12h"),
    ],
)
def test_a_transport_that_cannot_work_is_refused(tmp_path: Any, written: str, message: str) -> None:
    file = tmp_path / "forge.toml"
    file.write_text(written)

    with pytest.raises(ConfigError, match=message):
        Config.load(file, {})


async def test_jobs_go_through_their_own_queues(
    make_app: MakeApp, make_queue: MakeQueue, work: Work, aws: str, sqs: Any
) -> None:
    urgent, rest = make_queue(), make_queue()
    routes = [{"queue_url": urgent, "priorities": ["high"]}]
    app = make_app(transport=transport(aws, rest, routes=routes))

    @app.job
    async def plain(ctx: JobContext) -> None: ...

    worker = await work(app)
    await worker.transport.receiver.stop()
    await app.dispatch(plain, priority="high")
    await app.dispatch(plain)
    await app.dispatch(plain)

    await until(lambda: waiting(sqs, urgent) == 1, 20, "the urgent one is sent")
    await until(lambda: waiting(sqs, rest) == 2, 20, "the others are sent")


async def test_a_free_slot_goes_to_the_first_queue_that_has_something(
    make_app: MakeApp, make_queue: MakeQueue, work: Work, aws: str, sqs: Any
) -> None:
    urgent, rest = make_queue(), make_queue()
    routes = [{"queue_url": urgent, "priorities": ["critical"]}]
    app = make_app(max_concurrent=1, transport=transport(aws, rest, routes=routes))
    gate, ran = asyncio.Event(), []

    @app.job
    async def named(ctx: JobContext, input: dict) -> None:
        ran.append(input["name"])
        await gate.wait()

    await work(app)
    await app.dispatch(named, {"name": "first"})
    await until(lambda: ran == ["first"], 20, "the slot is taken")
    await app.dispatch_many(named, [{"name": "plain"}] * 3)
    await app.dispatch(named, {"name": "urgent"}, priority="critical")
    await until(lambda: waiting(sqs, urgent) == 1 and waiting(sqs, rest) == 4, 20, "all are sent")

    gate.set()
    await until(lambda: len(ran) == 5, 30, "all have run")
    assert ran == ["first", "urgent", "plain", "plain", "plain"]


async def test_no_more_is_received_than_there_is_room_for(
    make_sqs_app: Callable[..., Forge], work: Work, sqs: Any, queue: str
) -> None:
    app = make_sqs_app(max_concurrent=3)
    gate, running = asyncio.Event(), []

    @app.job
    async def slow(ctx: JobContext) -> None:
        running.append(ctx.job_id)
        await gate.wait()

    worker = await work(app)
    await app.dispatch_many(slow, [None] * 8)
    await until(lambda: len(running) == 3, 20, "the slots are taken")
    await until(lambda: waiting(sqs, queue) == 8, 20, "all are sent")
    names = ["ApproximateNumberOfMessagesNotVisible"]
    hidden = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=names)["Attributes"]

    assert hidden == {"ApproximateNumberOfMessagesNotVisible": "3"}
    assert len(worker.runner.running) == 3
    gate.set()
    await until(lambda: len(running) == 8, 30, "all have run")


async def test_a_worker_leaves_what_it_cannot_run_to_others(
    make_sqs_app: Callable[..., Forge], work: Work
) -> None:
    weak, able = make_sqs_app(), make_sqs_app(capabilities=["media"])
    for app in (weak, able):

        @app.job(worker_capability="media")
        async def film(ctx: JobContext) -> str:
            return "filmed"

    await work(weak)
    handle = await weak.dispatch("film")
    await work(able)

    assert await handle.result(timeout=60) == "filmed"


async def test_a_drained_worker_gives_messages_back_at_once(
    make_sqs_app: Callable[..., Forge], sqs: Any, queue: str
) -> None:
    app = make_sqs_app({"visibility_timeout": "10m"}, shutdown_grace="1s")
    begun = asyncio.Event()

    @app.job
    async def endless(ctx: JobContext) -> None:
        begun.set()
        await asyncio.Event().wait()

    worker = Worker(app)
    working = asyncio.create_task(worker.run())
    await worker.started.wait()
    handle = await app.dispatch(endless)
    await asyncio.wait_for(begun.wait(), 20)
    worker.release()
    await asyncio.wait_for(working, 30)

    job = await handle.get()
    assert (job.status, job.attempts) == ("pending", 0)
    found = sqs.receive_message(QueueUrl=queue).get("Messages", [])
    assert [str(handle.id) in message["Body"] for message in found] == [True]
