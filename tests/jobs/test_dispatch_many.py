"""`dispatch_many`: all or nothing, from any iterable, with the index of a bad input."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from pydantic import BaseModel

from forge import Forge, InvalidPayload, JobContext
from tests.apps import Work
from tests.faults.kit.process import until

COPYING = "select count(*) from pg_stat_progress_copy where datname = current_database()"


class Row(BaseModel):
    n: int


async def test_every_input_becomes_a_job_in_order(app: Forge, psql: Any) -> None:
    _define(app)

    count = await app.dispatch_many("plain", [{"n": n} for n in range(2500)])

    assert count == 2500
    found = await psql.fetch(
        "select (input ->> 'n')::int as n from forge_jobs order by created_at, id"
    )
    assert [row["n"] for row in found] == list(range(2500))


async def test_a_large_batch_uses_copy(app: Forge, psql: Any) -> None:
    _define(app)
    await psql.execute("create extension pg_stat_statements")
    await psql.execute("select pg_stat_statements_reset()")

    await app.dispatch_many("plain", ({"n": n} for n in range(3000)))

    calls, rows = await psql.fetchrow(
        "select sum(calls)::int, sum(rows)::int from pg_stat_statements "
        "where query ilike 'copy %forge_jobs%' and dbid = "
        "(select oid from pg_database where datname = current_database())"
    )
    assert (calls, rows) == (1, 3000)


async def test_a_generator_is_read_lazily(app: Forge, database_url: str) -> None:
    _define(app)
    under_way: list[Any] = []

    def numbers() -> Iterator[dict[str, int]]:
        with psycopg.connect(database_url, autocommit=True) as looking:
            for n in range(1500):
                if n % 500 == 499:
                    under_way.append(looking.execute(COPYING).fetchone())
                yield {"n": n}

    assert await app.dispatch_many("plain", numbers()) == 1500
    assert under_way == [(1,)] * 3


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("plain", ValueError),
        ("plain", OSError),
        ("keyed", ValueError),
        ("keyed", OSError),
        ("keyed", TimeoutError),
        ("plain", TimeoutError),
    ],
)
async def test_a_failing_generator_dispatches_nothing_and_its_error_propagates(
    app: Forge, psql: Any, name: str, error: type[Exception]
) -> None:
    _define(app)

    def numbers() -> Iterator[dict[str, int]]:
        for n in range(1200):
            yield {"n": n}
        raise error("the file ended")

    with pytest.raises(error, match="the file ended"):
        await app.dispatch_many(name, numbers())

    assert await psql.fetchval("select count(*) from forge_jobs") == 0
    assert await psql.fetchval("select count(*) from forge_idempotency_keys") == 0
    assert await app.dispatch_many(name, [{"n": 1}]) == 1


@pytest.mark.parametrize("name", ["typed", "keyed_typed"])
async def test_an_invalid_input_is_named_by_its_index_and_path(
    app: Forge, psql: Any, name: str
) -> None:
    _define(app)
    inputs: list[Any] = [{"n": n} for n in range(1100)]
    inputs[1050] = {"n": "many"}

    with pytest.raises(InvalidPayload, match=r"input 1050: .*\$\.n") as refused:
        await app.dispatch_many(name, inputs)

    assert refused.value.path == "$.n"
    assert await psql.fetchval("select count(*) from forge_jobs") == 0


async def test_a_value_that_json_cannot_represent_is_named(app: Forge, psql: Any) -> None:
    _define(app)

    with pytest.raises(InvalidPayload, match=r"input 2: .*\$\.n is NaN"):
        await app.dispatch_many("plain", [{"n": 0}, {"n": 1}, {"n": float("nan")}])

    assert await psql.fetchval("select count(*) from forge_jobs") == 0


async def test_an_empty_batch_is_accepted(app: Forge, psql: Any) -> None:
    _define(app)

    assert await app.dispatch_many("plain", []) == 0
    assert await app.dispatch_many("keyed", []) == 0


async def test_the_options_apply_to_each(app: Forge, psql: Any) -> None:
    _define(app)

    await app.dispatch_many(
        "plain", [{}, {}], priority="low", tenant_id=3, queue="side", tags=["a", "b,c"]
    )

    found = await psql.fetch("select priority, tenant_id, queue, tags from forge_jobs")
    assert [tuple(row) for row in found] == [(25, 3, "side", ["a", "b,c"])] * 2


@pytest.mark.parametrize(
    "text", ["tab\t", "line\nfeed", "back\\slash", "\\.", "\\N", '"quoted"', "\u2028", "🎈"]
)
async def test_text_is_stored_unchanged(app: Forge, work: Work, text: str) -> None:
    got: list[Any] = []

    @app.job
    async def echo(ctx: JobContext, input: dict) -> None:
        got.append(input)

    await work(app)
    await app.dispatch_many(echo, [{text: text}])

    await until(lambda: got, 10, "it ran")
    assert got == [{text: text}]


def _define(app: Forge) -> None:
    @app.job
    async def plain(ctx: JobContext, input: dict) -> None: ...

    @app.job(idempotent="input.n")
    async def keyed(ctx: JobContext, input: dict) -> None: ...

    @app.job
    async def typed(ctx: JobContext, input: Row) -> None: ...

    @app.job(idempotent="input.n")
    async def keyed_typed(ctx: JobContext, input: Row) -> None: ...
