"""Types with a category: every way to dispatch applies the same payload rules."""

from typing import Any
from uuid import UUID

import pytest

from forge import Forge, InvalidPayload, JobContext
from tests.jobs.payload_rules.ways import (
    CORRELATION,
    ENVELOPE,
    OPTIONS,
    PAYLOAD,
    WAYS,
    Fetch,
    dispatch,
    only_job,
    register_types,
)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("given", ["in the payload", "as arguments", "both"])
async def test_the_envelope_is_stored_in_the_columns_and_in_the_payload(
    app: Forge, fetch: Fetch, database_url: str, psql: Any, way: str, given: str
) -> None:
    payload = PAYLOAD if given != "as arguments" else {"connection_id": 456}
    options = OPTIONS if given != "in the payload" else {}

    await dispatch(way, app, database_url, payload, **options)

    job = await only_job(psql)
    assert job["input"] == payload | ENVELOPE
    assert (job["tenant_id"], job["correlation_id"]) == (123, CORRELATION)
    assert job["idempotency_key"] == ENVELOPE["idempotency_key"]
    assert (job["category"], job["payload_version"]) == ("ingestion", "1.0")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("missing", ["tenant_id", "correlation_id", "idempotency_key"])
async def test_a_payload_without_its_envelope_is_rejected(
    app: Forge, fetch: Fetch, database_url: str, psql: Any, way: str, missing: str
) -> None:
    payload = {name: value for name, value in PAYLOAD.items() if name != missing}

    with pytest.raises(InvalidPayload, match=rf"\$\.{missing} is required"):
        await dispatch(way, app, database_url, payload)

    assert await psql.fetchval("select count(*) from forge_jobs") == 0


@pytest.mark.parametrize("way", WAYS)
async def test_a_payload_without_a_required_reference_is_rejected(
    app: Forge, fetch: Fetch, database_url: str, way: str
) -> None:
    with pytest.raises(InvalidPayload, match=r"\$\.connection_id is required"):
        await dispatch(way, app, database_url, ENVELOPE)


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
        # dispatch_many does not accept one key for many jobs.
        if way != "many" or "idempotency_key" not in different
    ],
)
async def test_arguments_and_payload_must_agree(
    app: Forge, fetch: Fetch, database_url: str, way: str, different: dict[str, Any]
) -> None:
    with pytest.raises(InvalidPayload, match="differ"):
        await dispatch(way, app, database_url, PAYLOAD, **different)


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
async def test_sensitive_content_is_rejected_and_never_shown(
    app: Forge, fetch: Fetch, database_url: str, way: str, secret: dict[str, Any]
) -> None:
    with pytest.raises(InvalidPayload) as refused:
        await dispatch(way, app, database_url, PAYLOAD | secret)

    assert "hunter2!" not in str(refused.value)


async def test_content_that_a_type_allows_is_accepted_everywhere(
    app: Forge, database_url: str, psql: Any
) -> None:
    @app.job(
        name="fetch",
        category="ingestion",
        allow_sensitive=["sync_token", "$.message.body", "$.pages[*].cursorToken"],
    )
    async def fetch(ctx: JobContext, input: dict[str, Any]) -> None: ...

    await register_types(app)
    content = {
        "syncToken": "abc",
        "message": {"body": "Dear Ann"},
        "pages": [{"cursorToken": "x"}, {"cursorToken": "y"}],
    }
    for way in WAYS:
        payload = PAYLOAD | content | {"idempotency_key": way}
        await dispatch(way, app, database_url, payload)
        with pytest.raises(InvalidPayload):
            await dispatch(way, app, database_url, payload | {"refresh_token": "zzz"})

    assert await psql.fetchval("select count(*) from forge_jobs") == len(WAYS)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"correlation_id": "not-a-uuid"}, r"\$\.correlation_id must be a UUID"),
        ({"correlation_id": 5}, r"\$\.correlation_id must be a UUID"),
        ({"correlation_id": {}}, r"\$\.correlation_id must be a UUID"),
        ({"tenant_id": 1.5}, r"\$\.tenant_id must be a whole number"),
        ({"tenant_id": "one"}, r"\$\.tenant_id must be a whole number"),
    ],
)
async def test_a_bad_envelope_is_reported_with_its_path_in_python_and_in_sql(
    app: Forge, fetch: Fetch, database_url: str, psql: Any, way: str, bad: Any, message: str
) -> None:
    with pytest.raises(Exception, match=message):
        await dispatch(way, app, database_url, PAYLOAD | bad)

    assert await psql.fetchval("select count(*) from forge_jobs") == 0
