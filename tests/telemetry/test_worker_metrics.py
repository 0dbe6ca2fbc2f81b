"""A worker's metrics are updated by their sources."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

import forge
from forge import Forge, JobContext, Worker
from forge.cli.processes.metrics_output import measured
from forge.telemetry.metrics.queue_figures import QueueWatch
from forge.telemetry.metrics.registries import Metrics
from tests.apps import MakeApp, Work
from tests.faults.kit.process import until
from tests.telemetry.exposed import Samples, shown
from tests.telemetry.handlers import call_from_process


async def test_attempts_are_measured_by_type_and_status(make_app: MakeApp, work: Work) -> None:
    app = make_app(metrics_port=0)

    @app.job(max_attempts=1)
    async def fail(ctx: JobContext) -> None:
        raise ValueError("no")

    @app.job(max_attempts=1, dead_letter=False)
    async def give_up(ctx: JobContext) -> None:
        raise ValueError("no")

    @app.job(retry=forge.Retry(backoff="fixed"))
    async def retry(ctx: JobContext) -> None:
        if not ctx.is_retry:
            raise ValueError("again")

    async with working(app, work):
        for job in (fail, give_up, retry):
            await app.dispatch(job)
        samples = await once(app, lambda s: s.get(("job_processed_total", "retry", "completed")))

    processed = {
        key[1:]: value for key, value in samples.items() if key[0] == "job_processed_total"
    }
    assert processed == {
        ("fail", "dead_letter"): 1,
        ("give_up", "failed"): 1,
        ("retry", "retry"): 1,
        ("retry", "completed"): 1,
    }
    assert samples["job_processing_duration_seconds_count", "retry", "completed"] == 1
    assert samples["job_queue_latency_milliseconds_count", "retry"] == 2


async def test_latency_runs_from_the_due_time_by_the_databases_clock(
    make_app: MakeApp, work: Work, psql: Any
) -> None:
    app = make_app(metrics_port=0)

    @app.job
    async def greet(ctx: JobContext) -> None: ...

    handle = await app.dispatch(greet)
    await psql.execute(
        "update forge_jobs set scheduled_at = now() - interval '4250 ms' where id = $1", handle.id
    )

    async with working(app, work):
        samples = await once(app, lambda s: s.get(("job_processed_total", "greet", "completed")))

    assert samples["job_queue_latency_milliseconds_sum", "greet"] >= 4250
    assert samples["job_queue_latency_milliseconds_bucket", "greet", "4000.0"] == 0


async def test_the_wait_of_a_long_attempt_is_seen_while_it_runs_and_counted_once(
    make_app: MakeApp, work: Work
) -> None:
    app = make_app(metrics_port=0)
    is_over = asyncio.Event()

    @app.job
    async def wait(ctx: JobContext) -> None:
        await is_over.wait()

    async with working(app, work):
        await app.dispatch(wait)
        await once(app, lambda s: s.get(("job_queue_latency_milliseconds_count", "wait")) == 1)
        is_over.set()
        samples = await once(app, lambda s: s.get(("job_processed_total", "wait", "completed")))

    assert samples["job_queue_latency_milliseconds_count", "wait"] == 1


async def test_running_attempts_are_counted_at_each_scrape(make_app: MakeApp, work: Work) -> None:
    app = make_app(metrics_port=0)
    is_over = asyncio.Event()

    @app.job
    async def wait(ctx: JobContext) -> None:
        await is_over.wait()

    async with working(app, work):
        await app.dispatch_many(wait, [None] * 3)
        await once(app, lambda s: s.get(("job_active_count", "wait")) == 3)
        is_over.set()
        await once(app, lambda s: s.get(("job_active_count", "wait")) == 0)


async def test_one_of_several_workers_shows_the_queue(make_app: MakeApp, work: Work) -> None:
    one, two = make_app(metrics_port=0), make_app(metrics_port=0)

    @one.job(queue="nobodys")
    async def unserved(ctx: JobContext) -> None: ...

    one.definitions.clear()  # the type is known, but no worker runs it
    unserved.app = one
    await one.dispatch_many(unserved, [None] * 7)

    async with working(one, work), working(two, work):

        def depths() -> list[float]:
            key = ("job_queue_depth", "unserved")
            found = [shown(app.metrics.worker.registry).get(key) for app in (one, two)]
            return [depth for depth in found if depth is not None]

        await until(lambda: depths() == [7], 20, "one of them shows seven waiting jobs")


async def test_queue_depth_excludes_jobs_that_are_not_due(app: Forge) -> None:
    @app.job
    async def later(ctx: JobContext) -> None: ...

    await app.dispatch(later, delay="1h")
    await app.dispatch(later)
    metrics = Metrics().worker
    watch = QueueWatch(metrics.queue, 6.0, metrics.job_queue_depth)

    await watch.refresh((await (await app.session()).database()).run)

    assert shown(metrics.registry)["job_queue_depth", "later"] == 1
    assert not watch.is_due


async def test_past_the_cap_the_depth_is_estimated(
    app: Forge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("forge.telemetry.metrics.queue_figures.CAP", 10)

    @app.job
    async def many(ctx: JobContext) -> None: ...

    await app.dispatch_many(many, [None] * 500)
    metrics = Metrics().worker
    watch = QueueWatch(metrics.queue, 6.0, metrics.job_queue_depth)

    await watch.refresh((await (await app.session()).database()).run)

    # The sample is of whole pages, here of all there are.
    assert shown(metrics.registry)["job_queue_depth", "many"] == 500


async def test_an_old_transaction_is_seen(app: Forge, psql: Any, database: Any) -> None:
    async with psql.transaction():
        await psql.execute("select txid_current()")
        metrics = Metrics().worker
        watch = QueueWatch(metrics.queue, 6.0)
        await until(lambda: _is_old(watch, metrics, database), 10, "the transaction has an age")


async def _is_old(watch: QueueWatch, metrics: Any, database: Any) -> bool:
    await watch.refresh(database.run)
    return shown(metrics.registry)["forge_oldest_snapshot_seconds", "session"] > 0.05


async def test_calls_of_handlers_to_other_services_are_measured(
    make_app: MakeApp, work: Work, serve: Any
) -> None:
    app = make_app(metrics_port=0)
    address = await serve(_broken_service())

    @app.job(max_attempts=1, dead_letter=False)
    async def call(ctx: JobContext) -> None:
        await ctx.http.get(f"{address}/fine")
        (await ctx.http.post(f"{address}/broken", extensions={"service": "shop"})).status_code  # noqa: B018
        await ctx.http.get("http://127.0.0.1:1/", extensions={"operation": "knock"})

    @app.job(max_attempts=1, dead_letter=False)
    def call_from_thread(ctx: JobContext) -> None:
        ctx.http.get(f"{address}/fine")

    async with working(app, work):
        await app.dispatch(call)
        await app.dispatch(call_from_thread)
        await once(app, lambda s: s.get(("job_processed_total", "call_from_thread", "completed")))
        samples = await once(app, lambda s: s.get(("job_processed_total", "call", "failed")))

    assert samples["external_duration_seconds_count", "GET", "127.0.0.1"] == 2
    assert samples["external_duration_seconds_count", "POST", "shop"] == 1
    assert samples["external_error_total", "503", "POST", "shop"] == 1
    assert samples["external_error_total", "ConnectError", "knock", "127.0.0.1"] == 1


async def test_what_a_child_process_measured_comes_along(
    make_app: MakeApp, work: Work, serve: Any
) -> None:
    app = make_app(metrics_port=0)
    address = await serve(_broken_service())
    app.register(call_from_process)
    trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

    async with working(app, work):
        for _ in range(2):
            value = {"address": f"{address}/fine", "traceparent": trace}
            await (await app.dispatch(call_from_process, value, traceparent=trace)).result(60)
        samples = shown(app.metrics.worker.registry)

    assert samples["external_duration_seconds_count", "look", "shop"] == 2


async def test_statements_of_a_worker_are_measured_by_their_names(
    make_app: MakeApp, work: Work
) -> None:
    app = make_app(metrics_port=0)

    @app.job
    async def greet(ctx: JobContext) -> None: ...

    async with working(app, work):
        await app.dispatch(greet)
        await once(app, lambda s: s.get(("job_processed_total", "greet", "completed")))
        # The heart beats in a thread of its own, when its time has come.
        samples = await once(app, lambda s: "workers/beat" in named(s))

    assert {"jobs/survey", "jobs/claim", "workers/beat"} <= named(samples)


@asynccontextmanager
async def working(app: Forge, work: Work) -> AsyncIterator[Worker]:
    """Run a worker of this app that is measured as `forge worker` does."""
    worker = await work(app)
    async with measured(worker, None):
        yield worker


def named(samples: Samples) -> set[str]:
    """Return the statements that were measured."""
    return {key[1] for key in samples if key[0] == "db_query_duration_seconds_count"}


async def once(app: Forge, holds: Any) -> Samples:
    """Wait until something holds of what a worker shows, and return that."""
    return await until(
        lambda: samples if holds(samples := shown(app.metrics.worker.registry)) else None,
        20,
        "the metrics say so",
    )  # type: ignore[return-value]


def _broken_service() -> Any:
    async def service(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            return
        status = 503 if scope["path"] == "/broken" else 200
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    return service
