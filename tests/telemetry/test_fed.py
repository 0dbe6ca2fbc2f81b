"""Metrics that rarely change are updated by their sources."""

import asyncio
from typing import Any
from uuid import uuid4

import httpx
import pytest

from forge import ActionContext, Forge, JobContext
from forge.cli.processes.metrics_output import measured
from forge.core.errors import SchemaMissing
from forge.core.events import AttemptRefused, Events, JobsRescued
from forge.core.workers.clock import DatabaseClock
from forge.store import workers
from forge.store.connection.database import Database
from forge.telemetry.metrics.attempts import measure_attempts
from forge.telemetry.metrics.queries import NO_TABLE, of_worker, table_of
from forge.telemetry.metrics.queue_figures import QueueWatch
from forge.telemetry.metrics.registries import Metrics
from tests.apps import MakeApp, Work
from tests.faults.kit.process import until
from tests.http.conftest import MakeToken
from tests.surface.pages import CHECKOUT
from tests.telemetry.exposed import Samples, scraped, shown

SQL = CHECKOUT / "src" / "forge" / "sql"


async def test_calls_of_actions_to_other_services_are_the_servers(
    app: Forge, http: httpx.AsyncClient, token: MakeToken
) -> None:
    @app.action
    async def call(ctx: ActionContext) -> None:
        with pytest.raises(httpx.ConnectError):
            await ctx.http.get("http://127.0.0.1:1/", extensions={"service": "shop"})

    await http.post("/_api/actions/call", json={}, headers=token("user"))

    samples = await scraped(http, token("staff"))
    assert samples["external_duration_seconds_count", "GET", "shop"] == 1
    assert samples["external_error_total", "ConnectError", "GET", "shop"] == 1


async def test_statements_of_a_worker_that_fail_are_counted_by_the_kind_of_error(
    app: Forge, psql: Any
) -> None:
    metrics = Metrics().worker
    app.observers.append(of_worker(metrics))
    await psql.execute("alter table forge_workers rename to gone")

    database = await (await app.session()).database()
    with pytest.raises(SchemaMissing):
        await database.run(workers.first(6.0))

    samples = shown(metrics.registry)
    assert samples["db_query_errors_total", "UndefinedTableError", "workers/first"] == 1
    assert samples["db_query_duration_seconds_count", "workers/first"] == 1


async def test_the_table_of_a_statement_is_a_table(psql: Any) -> None:
    tables = {row["tablename"] for row in await psql.fetch("select tablename from pg_tables")}
    folders = {path.name for path in SQL.iterdir() if path.is_dir()} - {"migrations"}

    assert {table_of(folder) for folder in folders - NO_TABLE} <= tables
    assert not {f"forge_{folder}" for folder in NO_TABLE} & tables
    assert folders - NO_TABLE


async def test_an_attempt_that_lost_its_job_counts_as_cancelled(
    make_app: MakeApp, work: Work
) -> None:
    app = make_app(metrics_port=0)

    @app.job
    async def endless(ctx: JobContext) -> None:
        await asyncio.Event().wait()

    def samples() -> Samples:
        return shown(app.metrics.worker.registry)

    async with measured(await work(app), None):
        handle = await app.dispatch(endless)
        await until(lambda: samples().get(("job_active_count", "endless")) == 1, 20, "it runs")
        await app.cancel(handle.id)
        cancelled = ("job_processed_total", "endless", "cancelled")
        await until(lambda: samples().get(cancelled) == 1, 20, "it is counted")


def test_what_workers_lose_is_counted() -> None:
    events, metrics = Events(), Metrics().worker
    measure_attempts(events, metrics, DatabaseClock(0.0))

    events.emit(AttemptRefused(uuid4(), 1, "complete"))
    events.emit(JobsRescued((uuid4(), uuid4()), (uuid4(),)))

    samples = shown(metrics.registry)
    assert samples["forge_attempts_refused_total", "complete"] == 1
    assert samples[("forge_jobs_rescued_total",)] == 2


async def test_oldest_due_is_the_age_of_the_oldest_due_job(
    app: Forge, psql: Any, database: Database
) -> None:
    @app.job
    async def wait(ctx: JobContext) -> None: ...

    await app.dispatch_many(wait, [None] * 3)
    await psql.execute(
        "update forge_jobs set scheduled_at = now() - interval '1 h' "
        "where id = (select id from forge_jobs limit 1)"
    )
    metrics = Metrics().worker

    await QueueWatch(metrics.queue, 6.0).refresh(database.run)

    assert 3600 <= shown(metrics.registry)["forge_oldest_due_seconds", "wait"] < 3700
