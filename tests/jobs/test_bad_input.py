"""Bad input is rejected with a clear error before anything is written."""

from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest

from forge import (
    AccessRefused,
    Config,
    DatabaseUnavailable,
    Forge,
    ForgeError,
    InvalidPayload,
    InvalidValue,
    JobContext,
    SchemaMissing,
    Worker,
)
from forge.store.embedded import Cluster
from tests.apps import MakeApp, Work


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def looped() -> Any:
    value: dict[str, Any] = {}
    value["self"] = value
    return value


PAYLOADS = {
    "nul": ({"a": "x\0y"}, r"\$\.a"),
    "nul in a key": ({"x\0y": 1}, r"\$"),
    "nan": ({"a": [1, float("nan")]}, r"\$\.a\[1\] is NaN"),
    "infinity": ({"a": float("-inf")}, r"\$\.a"),
    "surrogate": ({"a": "\ud800"}, r"\$\.a"),
    "too large": ({"a": "x" * 10_000_000}, "10,000,008 bytes of JSON, the limit is 262,144"),
    "too deep": ({"a": deep(10_000)}, "nested deeper than 64 levels; flatten it"),
    "in a circle": (looped(), "contains itself"),
    "bytes": ({"a": b"x"}, "pass base64 text"),
    "a set": ({"a": {1}}, "pass a list"),
    "an object": ({"a": object()}, r"\$\.a is of type object"),
    "a number as key": ({1: "x"}, "JSON keys are text"),
    "a huge number": ({"a": 10**5000}, r"\$\.a"),
}


@pytest.mark.parametrize("case", PAYLOADS)
@pytest.mark.parametrize("way", ["one", "many"])
async def test_a_payload_that_cannot_be_stored_is_rejected_with_its_path(
    app: Forge, psql: Any, case: str, way: str
) -> None:
    payload, message = PAYLOADS[case]
    _define(app)

    with pytest.raises(InvalidPayload, match=message):
        await _dispatch(app, way, payload)

    assert await psql.fetchval("select count(*) from forge_jobs") == 0


OPTIONS: list[dict[str, Any]] = [
    {"delay": 5},
    {"delay": "soon"},
    {"delay": "-1s"},
    {"delay": timedelta(days=-1)},
    {"delay": "99999999d"},
    {"scheduled_at": "tomorrow"},
    {"scheduled_at": datetime(2031, 1, 1)},
    {"scheduled_at": datetime(9999, 12, 31, tzinfo=UTC)},
    {"scheduled_at": datetime(1, 1, 1, tzinfo=UTC)},
    {"scheduled_at": 1_900_000_000},
    {"expires_at": datetime(2031, 1, 1)},
    {"expires_at": "never"},
    {"tenant_id": "1"},
    {"tenant_id": 2**63},
    {"tenant_id": True},
    {"tenant_id": 1.0},
    {"correlation_id": "not a uuid"},
    {"correlation_id": 7},
    {"parent_id": "x"},
    {"queue": ""},
    {"queue": "a\0b"},
    {"queue": "x" * 256},
    {"queue": None},
    {"tags": "one"},
    {"tags": [1]},
    {"tags": ["a\0"]},
    {"tags": 5},
    {"auth": {"a": float("nan")}},
    {"meta": {"a": {1}}},
    {"payload_version": "x" * 33},
    {"traceparent": 5},
    {"traceparent": "x" * 300},
    {"traceparent": "a\0b"},
    {"idempotency_key": ""},
    {"idempotency_key": 5},
    {"colour": "red"},
    {"prioriti": 5},
]


@pytest.mark.parametrize("options", OPTIONS, ids=lambda given: repr(given)[:60])
async def test_an_invalid_option_is_rejected_by_name(
    app: Forge, psql: Any, options: dict[str, Any]
) -> None:
    _define(app)
    (name,) = options

    with pytest.raises((InvalidValue, InvalidPayload), match=name.rstrip("s")):
        await app.dispatch("ping", {}, **options)

    assert await psql.fetchval("select count(*) from forge_jobs") == 0


async def test_an_unknown_option_error_lists_the_options(app: Forge) -> None:
    _define(app)

    with pytest.raises(InvalidValue, match=r"no option 'colour'; it takes priority, scheduled_at"):
        await app.dispatch("ping", {}, colour="red")  # type: ignore[call-arg]


def test_an_unknown_job_attribute_error_lists_the_attributes(app: Forge) -> None:
    with pytest.raises(
        InvalidValue, match="no attribute 'colour'; it takes name, timeout, priority, max_attempts"
    ):

        @app.job(colour=3)
        async def ping(ctx: Any) -> None: ...


def test_a_misspelt_job_attribute_error_suggests_the_nearest_one(app: Forge) -> None:
    with pytest.raises(InvalidValue, match=r"no attribute 'retries'; did you mean retry\?"):
        app.job(retries=3)


async def test_an_error_about_a_naive_time_shows_how_to_add_a_zone(app: Forge) -> None:
    _define(app)

    with pytest.raises(InvalidValue, match=r"no time zone; use datetime\.now\(timezone\.utc\)"):
        await app.dispatch("ping", {}, scheduled_at=datetime(2031, 1, 1))


async def test_a_job_dispatched_after_a_rejected_one_runs(app: Forge, work: Work) -> None:
    _define(app)
    await work(app)
    for payload, _ in PAYLOADS.values():
        with pytest.raises(InvalidPayload):
            await app.dispatch("ping", payload)

    assert await (await app.dispatch("ping", {})).result(10) == "pong"


@pytest.mark.parametrize("case", sorted(set(PAYLOADS) - {"too large"}))
async def test_a_bad_output_fails_its_attempt_and_the_worker_continues(
    app: Forge, work: Work, case: str
) -> None:
    _define(app)

    @app.job
    async def give(ctx: JobContext) -> Any:
        return PAYLOADS[case][0]

    await work(app)
    handle = await give.dispatch()
    async for job in handle.updates():
        if job.status == "retry":
            break

    assert "the output" in (job.last_error or "")
    assert await (await app.dispatch("ping", {})).result(10) == "pong"


@pytest.mark.parametrize("way", ["one", "many"])
async def test_an_error_names_a_closed_connection(app: Forge, database_url: str, way: str) -> None:
    _define(app)
    conn = await asyncpg.connect(database_url)
    await conn.close()

    with pytest.raises(DatabaseUnavailable, match="conn= is closed; open a connection"):
        await _dispatch(app, way, {}, conn=conn)


async def test_a_full_pool_raises_within_its_timeout(make_app: MakeApp, psql: Any) -> None:
    app = make_app(database={"pool_size": 1, "connect_timeout": "200ms"})
    _define(app)
    database = await (await app.session()).database()

    async with database.acquire():
        with pytest.raises(
            DatabaseUnavailable, match=r"within 0\.2 s; raise \[database\] pool_size"
        ):
            await app.dispatch("ping", {})

    await app.dispatch("ping", {})
    assert await psql.fetchval("select count(*) from forge_jobs") == 1


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://forge@127.0.0.1:1/forge",
        "postgresql://forge@/forge?host=/nowhere/at/all",
    ],
)
async def test_an_unreachable_database_error_names_the_setting_to_check(url: str) -> None:
    app = Forge(Config(database={"connect_timeout": "2s"}), database_url=url)
    _define(app)

    with pytest.raises(DatabaseUnavailable, match="FORGE_DATABASE_URL"):
        await app.dispatch("ping", {})
    await app.close()


async def test_a_missing_database_error_names_the_setting_to_check(server: Cluster) -> None:
    app = Forge(Config(), database_url=server.url("no_such_database"))
    _define(app)

    with pytest.raises(AccessRefused, match=r"no_such_database.*FORGE_DATABASE_URL"):
        await app.dispatch("ping", {})
    with pytest.raises(AccessRefused, match=r"no_such_database.*FORGE_DATABASE_URL"):
        await Worker(app).run()
    await app.close()


async def test_a_database_without_tables_error_mentions_migrate(server: Cluster) -> None:
    app = Forge(Config(), database_url=server.url("postgres"))
    _define(app)

    with pytest.raises(SchemaMissing, match="run `forge migrate`"):
        await app.dispatch("ping", {})
    with pytest.raises(SchemaMissing, match="run `forge migrate`"):
        await app.dispatch_many("ping", [{}])
    with pytest.raises(SchemaMissing, match="run `forge migrate`"):
        await Worker(app).run()
    await app.close()


async def test_every_rejection_is_a_forge_error(app: Forge) -> None:
    _define(app)

    for payload, options in (({1: 1}, {}), ({}, {"priority": "x"}), ({}, {"delay": "x"})):
        with pytest.raises(ForgeError):
            await app.dispatch("ping", payload, **options)  # type: ignore[arg-type]


async def _dispatch(app: Forge, way: str, payload: Any, **options: Any) -> None:
    if way == "one":
        await app.dispatch("ping", payload, **options)
    else:
        await app.dispatch_many("ping", [{}, payload], **options)


def _define(app: Forge) -> None:
    @app.job
    async def ping(ctx: JobContext, input: dict) -> str:
        return "pong"
