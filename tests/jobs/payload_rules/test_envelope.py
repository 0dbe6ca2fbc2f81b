"""The envelope of a payload: kept for every input type, and copied to the job's columns."""

from typing import Any
from uuid import UUID, uuid4

import pytest
from pydantic import BaseModel, ConfigDict

from forge import Forge, InvalidPayload, JobContext
from tests.apps import Work
from tests.jobs.payload_rules.ways import (
    CORRELATION,
    ENVELOPE,
    OPTIONS,
    PAYLOAD,
    Fetch,
    only_job,
    register_types,
)


async def test_sensitive_content_that_the_model_would_drop_is_rejected(app: Forge) -> None:
    class Message(BaseModel):
        connection_id: int

    @app.job(name="typed", category="ingestion", requires=["connection_id"])
    async def typed(ctx: JobContext, input: Message) -> None: ...

    with pytest.raises(InvalidPayload, match=r"\$\.password") as refused:
        await typed.dispatch(PAYLOAD | {"password": "hunter2"})

    assert "hunter2" not in str(refused.value)


async def test_a_rejection_lists_every_problem_with_its_path(app: Forge, fetch: Fetch) -> None:
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
    assert str(refused.value).startswith("the payload of fetch ")


async def test_a_second_dispatch_returns_the_first_job(app: Forge, fetch: Fetch) -> None:
    first = await fetch.dispatch(PAYLOAD)
    again = await fetch.dispatch(PAYLOAD | {"correlation_id": str(uuid4())})
    other_tenant = await fetch.dispatch(PAYLOAD | {"tenant_id": 5})

    assert (again.id, again.deduplicated) == (first.id, True)
    assert other_tenant.id != first.id


async def test_payloads_of_one_dispatch_many_may_have_different_tenants(
    app: Forge, fetch: Fetch, psql: Any
) -> None:
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


async def test_a_bad_payload_among_many_is_named_by_its_index(app: Forge, fetch: Fetch) -> None:
    with pytest.raises(InvalidPayload, match=r"input 1: .*\$\.tenant_id"):
        await app.dispatch_many("fetch", [PAYLOAD, PAYLOAD | {"tenant_id": None}])


class Closed(BaseModel):
    """An input without the envelope's fields that forbids extra fields."""

    model_config = ConfigDict(extra="forbid")

    document_id: int


class Open(BaseModel):
    """An input that ignores extra fields."""

    document_id: int


class WithEnvelope(BaseModel):
    """An input with the envelope's fields."""

    document_id: int
    tenant_id: int
    correlation_id: UUID
    idempotency_key: str


@pytest.mark.parametrize("model", [Closed, Open, WithEnvelope])
@pytest.mark.parametrize("given", ["in the payload", "as arguments"])
async def test_every_input_type_keeps_the_envelope(
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
    assert (await only_job(psql))["input"] == {"document_id": 7} | ENVELOPE


async def test_generated_keys_are_stored_in_the_payload(app: Forge, psql: Any) -> None:
    @app.job(category="sync", idempotent="input.event_id")
    async def pull(ctx: JobContext, input: dict[str, Any]) -> None: ...

    @app.job(category="sync", idempotent=True)
    async def push(ctx: JobContext, input: dict[str, Any]) -> None: ...

    await register_types(app)
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


async def test_the_version_of_a_payload_is_stored_with_it(app: Forge, fetch: Fetch) -> None:
    plain = await fetch.dispatch(PAYLOAD)
    inside = await fetch.dispatch(PAYLOAD | {"idempotency_key": "k2", "payload_version": "2.0"})
    outside = await fetch.dispatch(PAYLOAD | {"idempotency_key": "k3"}, payload_version="3.0")

    versions = [(await handle.get()).payload_version for handle in (plain, inside, outside)]
    assert versions == ["1.0", "2.0", "3.0"]
    with pytest.raises(InvalidPayload, match="differ; leave one of them out"):
        await fetch.dispatch(
            PAYLOAD | {"idempotency_key": "k4", "payload_version": "2.0"}, payload_version="3.0"
        )
