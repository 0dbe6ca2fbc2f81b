"""Job types by name: registered when a worker starts, and dispatched without their code."""

import json
from datetime import timedelta
from typing import Any

import pytest
from pydantic import BaseModel

from forge import Forge, InvalidPayload, JobContext, Retry, UnknownJobType
from forge.definitions import catalog
from tests.apps import MakeApp, Work
from tests.worker import handlers


class Order(BaseModel):
    id: int
    note: str = ""


async def test_a_worker_writes_its_types_when_it_starts(app: Forge, work: Work, psql: Any) -> None:
    @app.job(
        timeout="30m",
        priority="high",
        retry=Retry(max_attempts=5, backoff="linear", max_backoff="10m"),
        worker_capability="media",
        queue="films",
        idempotent="input.id",
        category="export",
        requires=["film_id"],
        dead_letter=False,
    )
    async def render(ctx: JobContext, input: Order) -> Order: ...

    app.register(handlers.where)
    await work(app)

    row = await psql.fetchrow("select * from forge_job_types where name = 'render'")
    expected = {
        "queue": "films",
        "priority": 75,
        "max_attempts": 5,
        "timeout": timedelta(minutes=30),
        "worker_capability": "media",
        "category": "export",
        "requires": ["film_id"],
        "idempotent": "input.id",
        "dead_letter": False,
        "isolation": "none",
    }
    assert {name: row[name] for name in expected} == expected
    assert json.loads(row["retry"]) == {"backoff": "linear", "max_backoff": "10m"}
    assert json.loads(row["input_schema"])["required"] == ["id"]
    assert json.loads(row["output_schema"])["title"] == "Order"
    isolation = "select isolation from forge_job_types where name = 'where'"
    assert await psql.fetchval(isolation) == "process"


async def test_a_changed_type_is_updated(make_app: MakeApp, work: Work, psql: Any) -> None:
    for attempts in (2, 4):
        app = make_app()

        @app.job(max_attempts=attempts)
        async def ping(ctx: JobContext) -> None: ...

        await work(app)

    assert await psql.fetchval("select max_attempts from forge_job_types") == 4


async def test_a_type_is_dispatched_by_name_without_its_code(make_app: MakeApp, work: Work) -> None:
    app, elsewhere = make_app(), make_app()

    @app.job(priority="low", max_attempts=7, queue="side")
    async def ping(ctx: JobContext, input: dict) -> dict:
        return input

    await work(app)
    handle = await elsewhere.dispatch("ping", {"n": 1})

    assert await handle.result(10) == {"n": 1}
    job = await handle.get()
    assert (job.priority, job.max_attempts, job.queue) == (25, 7, "side")
    assert await elsewhere.dispatch_many("ping", [{"n": n} for n in range(5)]) == 5


async def test_the_cached_definition_of_a_type_expires(
    make_app: MakeApp, work: Work, psql: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    app, elsewhere = make_app(), make_app()

    @app.job
    async def ping(ctx: JobContext) -> None: ...

    async def attempts_of_a_new_job() -> int:
        return (await (await elsewhere.dispatch("ping")).get()).max_attempts

    await work(app)
    monkeypatch.setattr(catalog, "KNOWN_FOR", 0.0)
    before = await attempts_of_a_new_job()
    await psql.execute("update forge_job_types set max_attempts = 4")
    monkeypatch.setattr(catalog, "KNOWN_FOR", 60.0)
    after = await attempts_of_a_new_job()
    await psql.execute("update forge_job_types set max_attempts = 5")

    assert (before, after) == (3, 4)
    assert await attempts_of_a_new_job() == 4, "it is believed for a minute"


async def test_an_unregistered_name_is_rejected(app: Forge, psql: Any) -> None:
    with pytest.raises(UnknownJobType, match=r"'nobody'; start a worker .* `forge migrate --app"):
        await app.dispatch("nobody", {})
    with pytest.raises(UnknownJobType):
        await app.dispatch_many("nobody", [{}])

    assert await psql.fetchval("select count(*) from forge_jobs") == 0


async def test_a_rejected_name_is_accepted_once_it_is_registered(
    make_app: MakeApp, work: Work
) -> None:
    app, elsewhere = make_app(), make_app()

    @app.job
    async def ping(ctx: JobContext) -> str:
        return "pong"

    with pytest.raises(UnknownJobType):
        await elsewhere.dispatch("ping")
    await work(app)

    assert await (await elsewhere.dispatch("ping")).result(10) == "pong"


async def test_a_worker_never_claims_a_type_it_does_not_have(
    make_app: MakeApp, work: Work, psql: Any
) -> None:
    app = make_app()

    @app.job
    async def ping(ctx: JobContext) -> str:
        return "pong"

    foreign = await psql.fetchval(
        "insert into forge_jobs (job_type, priority) values ('foreign', 100) returning id"
    )
    await work(app)
    await (await ping.dispatch()).result(10)

    row = await psql.fetchrow("select status, lease from forge_jobs where id = $1", foreign)
    assert tuple(row) == ("pending", 0)


async def test_an_input_is_validated_without_the_code_of_its_type(
    app: Forge, work: Work, database_url: str
) -> None:
    @app.job
    async def greet(ctx: JobContext, input: Order) -> None: ...

    await work(app)

    async with Forge(database_url=database_url) as elsewhere:
        with pytest.raises(InvalidPayload, match=r"\$\.id") as refused:
            await elsewhere.dispatch("greet", {"id": "seven-777"})
        await elsewhere.dispatch("greet", {"id": 7})

    assert refused.value.path == "$.id"
    assert "seven-777" not in str(refused.value)
