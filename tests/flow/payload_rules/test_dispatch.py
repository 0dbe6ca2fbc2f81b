"""Types with a category: every way of dispatching holds their payloads to the same rules."""

import json
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import psycopg
import pytest
from pydantic import BaseModel, ConfigDict

from forge import Forge, InvalidPayload, InvalidValue, JobContext, JobDefinition
from forge.store import job_types
from forge.types import type_rows
from tests.flow.engine.conftest import Work

CORRELATION = UUID("550e8400-e29b-41d4-a716-446655440000")
ENVELOPE: dict[str, Any] = {
    "tenant_id": 123,
    "correlation_id": str(CORRELATION),
    "idempotency_key": "email_fetch_conn_456_msg_789",
}
PAYLOAD = ENVELOPE | {"connection_id": 456, "external_message_id": "msg_789"}
OPTIONS: dict[str, Any] = {
    "tenant_id": 123,
    "correlation_id": CORRELATION,
    "idempotency_key": "email_fetch_conn_456_msg_789",
}
Fetch = JobDefinition[Any, Any]


@pytest.fixture
async def fetch(app: Forge) -> Fetch:
    """A type of a category whose payloads must name a connection."""

    @app.job(name="fetch", category="ingestion", requires=["connection_id"])
    async def fetch(ctx: JobContext, input: dict[str, Any]) -> dict[str, Any]:
        return input

    await _make_known(app)
    return fetch


async def _make_known(app: Forge) -> None:
    database = await (await app.session()).database()
    await database.run(job_types.register(type_rows(app.definitions.values())))


async def _only_job(psql: Any) -> dict[str, Any]:
    row = dict(await psql.fetchrow("select * from forge_jobs"))
    return row | {"input": json.loads(row["input"])}


async def _dispatch_sync_conn(app: Forge, url: str, payload: Any, **options: Any) -> None:
    with psycopg.connect(url) as conn:
        app.sync.dispatch("fetch", payload, conn=conn, **options)


async def _dispatch(way: str, app: Forge, url: str, payload: Any, **options: Any) -> None:
    match way:
        case "one":
            await app.dispatch("fetch", payload, **options)
        case "many":
            key = {k: v for k, v in options.items() if k == "idempotency_key"}
            rest = {k: v for k, v in options.items() if k != "idempotency_key"}
            await app.dispatch_many("fetch", [payload | key], **rest)
        case "conn":
            conn = await asyncpg.connect(url)
            async with conn.transaction():
                await app.dispatch("fetch", payload, conn=conn, **options)
            await conn.close()
        case "sync":
            import asyncio

            await asyncio.to_thread(lambda: app.sync.dispatch("fetch", payload, **options))
        case "sync conn":
            await _dispatch_sync_conn(app, url, payload, **options)
        case "elsewhere":
            async with Forge(database_url=url) as other:
                await other.dispatch("fetch", payload, **options)
        case "sql":
            conn = await asyncpg.connect(url)
            names = "".join(f", {name} => ${n}" for n, name in enumerate(options, 2))
            try:
                await conn.execute(
                    f"select forge_dispatch('fetch', $1::text::jsonb{names})",
                    json.dumps(payload),
                    *options.values(),
                )
            except asyncpg.PostgresError as error:
                raise InvalidPayload(str(error)) from error
            finally:
                await conn.close()


WAYS = ["one", "many", "conn", "sync", "sync conn", "elsewhere", "sql"]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("given", ["in the payload", "as arguments", "both"])
async def test_the_envelope_is_stored_in_the_columns_and_in_the_payload(
    app: Forge, fetch: Fetch, database_url: str, psql: Any, way: str, given: str
) -> None:
    payload = PAYLOAD if given != "as arguments" else {"connection_id": 456}
    options = OPTIONS if given != "in the payload" else {}

    await _dispatch(way, app, database_url, payload, **options)

    job = await _only_job(psql)
    assert job["input"] == payload | ENVELOPE
    assert (job["tenant_id"], job["correlation_id"]) == (123, CORRELATION)
    assert job["idempotency_key"] == ENVELOPE["idempotency_key"]
    assert (job["category"], job["payload_version"]) == ("ingestion", "1.0")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("missing", ["tenant_id", "correlation_id", "idempotency_key"])
async def test_a_payload_without_its_envelope_is_refused(
    app: Forge, fetch: Fetch, database_url: str, psql: Any, way: str, missing: str
) -> None:
    payload = {name: value for name, value in PAYLOAD.items() if name != missing}

    with pytest.raises(InvalidPayload, match=rf"\$\.{missing} is required"):
        await _dispatch(way, app, database_url, payload)

    assert await psql.fetchval("select count(*) from forge_jobs") == 0


@pytest.mark.parametrize("way", WAYS)
async def test_a_payload_without_a_reference_that_its_type_requires_is_refused(
    app: Forge, fetch: Fetch, database_url: str, way: str
) -> None:
    with pytest.raises(InvalidPayload, match=r"\$\.connection_id is required"):
        await _dispatch(way, app, database_url, ENVELOPE)


DIFFERENCES: list[dict[str, Any]] = [
    {"tenant_id": 124},
    {"correlation_id": UUID("650e8400-e29b-41d4-a716-446655440000")},
    {"idempotency_key": "other"},
]


@pytest.mark.parametrize(
    ("way", "different"),
    [
        pytest.param(way, different, id=f"{way}-{next(iter(different))}")
        for way in WAYS
        for different in DIFFERENCES
        # One key cannot stand for many jobs.
        if way != "many" or "idempotency_key" not in different
    ],
)
async def test_arguments_and_payload_must_agree(
    app: Forge, fetch: Fetch, database_url: str, way: str, different: dict[str, Any]
) -> None:
    with pytest.raises(InvalidPayload, match="differ"):
        await _dispatch(way, app, database_url, PAYLOAD, **different)


async def test_sensitive_content_that_the_model_would_drop_is_refused_too(app: Forge) -> None:
    class Message(BaseModel):
        connection_id: int

    @app.job(name="typed", category="ingestion", requires=["connection_id"])
    async def typed(ctx: JobContext, input: Message) -> None: ...

    with pytest.raises(InvalidPayload, match=r"\$\.password") as refused:
        await typed.dispatch(PAYLOAD | {"password": "hunter2"})

    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "secret",
    [
        {"password": "hunter2!"},
        {"deep": [{"apiKey": "hunter2!"}]},
        {"note": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.hunter2!"},
        {"mail": {"body": "Dear Ann, hunter2!"}},
    ],
    ids=["a name", "deep", "a shape", "a body"],
)
async def test_sensitive_content_is_refused_and_never_shown(
    app: Forge, fetch: Fetch, database_url: str, way: str, secret: dict[str, Any]
) -> None:
    with pytest.raises(InvalidPayload) as refused:
        await _dispatch(way, app, database_url, PAYLOAD | secret)

    assert "hunter2!" not in str(refused.value)


async def test_a_refusal_names_every_fault_with_its_path(app: Forge, fetch: Fetch) -> None:
    with pytest.raises(InvalidPayload) as refused:
        await fetch.dispatch({"tenant_id": "123", "a": [{"clientSecret": "x"}]})

    paths = {fault.path for fault in refused.value.faults}
    assert paths == {
        "$.tenant_id",
        "$.correlation_id",
        "$.idempotency_key",
        "$.connection_id",
        "$.a[0].clientSecret",
    }


async def test_a_second_dispatch_returns_the_first_job(app: Forge, fetch: Fetch) -> None:
    first = await fetch.dispatch(PAYLOAD)
    again = await fetch.dispatch(PAYLOAD | {"correlation_id": str(uuid4())})
    other_tenant = await fetch.dispatch(PAYLOAD | {"tenant_id": 5})

    assert (again.id, again.deduplicated) == (first.id, True)
    assert other_tenant.id != first.id


async def test_many_may_belong_to_different_tenants(app: Forge, fetch: Fetch, psql: Any) -> None:
    payloads = [
        PAYLOAD | {"tenant_id": n % 3, "idempotency_key": f"k{n // 2}", "correlation_id": uuid4()}
        for n in range(12)
    ]

    made = await app.dispatch_many("fetch", payloads)

    found = await psql.fetch(
        "select tenant_id, idempotency_key from forge_jobs "
        "where input ->> 'tenant_id' = tenant_id::text "
        "and input ->> 'idempotency_key' = idempotency_key "
        "and input ->> 'correlation_id' = correlation_id::text"
    )
    assert made == len(found) == 12
    assert {tuple(row) for row in found} == {
        (p["tenant_id"], p["idempotency_key"]) for p in payloads
    }


async def test_a_bad_payload_among_many_is_named_by_its_place(app: Forge, fetch: Fetch) -> None:
    with pytest.raises(InvalidPayload, match=r"input 1: .*\$\.tenant_id"):
        await app.dispatch_many("fetch", [PAYLOAD, PAYLOAD | {"tenant_id": None}])


class Closed(BaseModel):
    """An input that knows nothing of the envelope and forbids what it does not know."""

    model_config = ConfigDict(extra="forbid")

    document_id: int


class Open(BaseModel):
    """An input that ignores what it does not know."""

    document_id: int


class Knowing(BaseModel):
    """An input that has the envelope's fields itself."""

    document_id: int
    tenant_id: int
    correlation_id: UUID
    idempotency_key: str


@pytest.mark.parametrize("model", [Closed, Open, Knowing])
@pytest.mark.parametrize("given", ["in the payload", "as arguments"])
async def test_a_type_of_any_shape_carries_its_envelope(
    app: Forge, work: Work, psql: Any, model: type[BaseModel], given: str
) -> None:
    async def scan(ctx: JobContext, input: Any) -> str:
        return f"{type(input).__name__} {input.document_id} {ctx.tenant_id}"

    scan.__annotations__["input"] = model
    definition = app.job(name="scan", category="documents", requires=["document_id"])(scan)
    await work(app)

    if given == "as arguments":
        handle = await definition.dispatch({"document_id": 7}, **OPTIONS)
    else:
        handle = await definition.dispatch({"document_id": 7} | ENVELOPE)

    assert await handle.result(10) == f"{model.__name__} 7 123"
    assert (await _only_job(psql))["input"] == {"document_id": 7} | ENVELOPE


async def test_a_type_that_makes_its_own_keys_puts_them_into_the_payload(
    app: Forge, psql: Any
) -> None:
    @app.job(category="sync", idempotent="input.event_id")
    async def pull(ctx: JobContext, input: dict[str, Any]) -> None: ...

    @app.job(category="sync", idempotent=True)
    async def push(ctx: JobContext, input: dict[str, Any]) -> None: ...

    await _make_known(app)
    shared: dict[str, Any] = {"tenant_id": 1, "correlation_id": CORRELATION}
    by_path = await pull.dispatch({"event_id": 9}, **shared)
    whole = await push.dispatch({"event_id": 9}, **shared)
    again = await push.dispatch({"event_id": 9}, tenant_id=1, correlation_id=uuid4())
    from_sql = await psql.fetchval(
        "select forge_dispatch('push', '{\"event_id\": 9}', tenant_id => 1, correlation_id => $1)",
        uuid4(),
    )

    first = await by_path.get()
    assert first.idempotency_key == first.input["idempotency_key"] == "pull:9"
    second = await whole.get()
    assert second.idempotency_key == second.input["idempotency_key"]
    assert again.id == whole.id == from_sql


async def test_the_version_of_a_payload_is_kept_beside_it(app: Forge, fetch: Fetch) -> None:
    plain = await fetch.dispatch(PAYLOAD)
    inside = await fetch.dispatch(PAYLOAD | {"idempotency_key": "k2", "payload_version": "2.0"})
    outside = await fetch.dispatch(PAYLOAD | {"idempotency_key": "k3"}, payload_version="3.0")

    versions = [(await handle.get()).payload_version for handle in (plain, inside, outside)]
    assert versions == ["1.0", "2.0", "3.0"]
    with pytest.raises(InvalidValue, match="leave one of them out"):
        await fetch.dispatch(
            PAYLOAD | {"idempotency_key": "k4", "payload_version": "2.0"}, payload_version="3.0"
        )


async def test_what_a_type_allows_is_let_through_everywhere(
    app: Forge, database_url: str, psql: Any
) -> None:
    @app.job(
        name="fetch",
        category="ingestion",
        allow_sensitive=["sync_token", "$.message.body", "$.pages[*].cursorToken"],
    )
    async def fetch(ctx: JobContext, input: dict[str, Any]) -> None: ...

    await _make_known(app)
    content = {
        "syncToken": "abc",
        "message": {"body": "Dear Ann"},
        "pages": [{"cursorToken": "x"}, {"cursorToken": "y"}],
    }
    for way in WAYS:
        payload = PAYLOAD | content | {"idempotency_key": way}
        await _dispatch(way, app, database_url, payload)
        with pytest.raises(InvalidPayload):
            await _dispatch(way, app, database_url, payload | {"refresh_token": "zzz"})

    assert await psql.fetchval("select count(*) from forge_jobs") == len(WAYS)
