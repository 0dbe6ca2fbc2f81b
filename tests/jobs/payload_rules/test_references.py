"""References: a payload names its subject, as its category or its type requires."""

import json
from typing import Any

import asyncpg
import pytest

from forge import Forge, InvalidPayload, JobContext, PayloadValidator
from tests.jobs.payload_rules.ways import ENVELOPE, WAYS, dispatch, register_types

REFERENCES = {
    "ingestion": ["connection_id", "external_message_id"],
    "sync": ["connection_id", "calendar_id", "event_id"],
    "recurrence": ["recurrence_id", "period_id"],
    "orchestration": ["execution_id", "step_id"],
    "documents": ["document_id"],
    "notifications": ["notification_id", "recipient_id", "user_id"],
    "export": [],
    "maintenance": [],
}
EMPTY: list[Any] = [None, "", " ", [], {}]


async def declare(app: Forge, **attributes: Any) -> None:
    @app.job(name="fetch", **attributes)
    async def fetch(ctx: JobContext, input: dict[str, Any]) -> None: ...

    await register_types(app)


async def rejected_by_sql(psql: Any, payload: Any) -> bool:
    try:
        await psql.execute("select forge_dispatch('fetch', $1)", json.dumps(payload))
    except asyncpg.InvalidParameterValueError:
        return True
    return False


@pytest.mark.parametrize("way", WAYS)
async def test_a_payload_without_any_reference_of_its_category_is_rejected(
    app: Forge, database_url: str, psql: Any, way: str
) -> None:
    await declare(app, category="sync")

    with pytest.raises(InvalidPayload, match="connection_id or calendar_id or event_id"):
        await dispatch(way, app, database_url, ENVELOPE | {"pages": 3})

    assert await psql.fetchval("select count(*) from forge_jobs") == 0


@pytest.mark.parametrize("way", WAYS)
async def test_one_reference_is_enough(app: Forge, database_url: str, psql: Any, way: str) -> None:
    await declare(app, category="sync")

    await dispatch(way, app, database_url, ENVELOPE | {"event_id": 9})

    assert await psql.fetchval("select count(*) from forge_jobs") == 1


@pytest.mark.parametrize("category", REFERENCES)
def test_the_validator_knows_the_references_of_each_category(category: str) -> None:
    names = REFERENCES[category]

    assert PayloadValidator.validate_payload(dict(ENVELOPE), category)[0] is not bool(names)
    for name in (*names, "order_id"):
        assert PayloadValidator.validate_payload(ENVELOPE | {name: 5}, category) == (True, [])
    for value in EMPTY if names else []:
        given = dict.fromkeys((*names, "order_id"), value)
        assert not PayloadValidator.validate_payload(ENVELOPE | given, category)[0]


def test_the_validator_accepts_requires_as_a_type_does() -> None:
    validate = PayloadValidator.validate_payload

    assert validate(dict(ENVELOPE), "sync", requires=[]) == (True, [])
    assert validate(ENVELOPE | {"page": 1}, "sync", requires=["page"]) == (True, [])
    assert not validate(ENVELOPE | {"event_id": 1}, "sync", requires=["page"])[0]
    assert not validate(ENVELOPE | {"event_id": 1}, "sync", ["page"])[0]
    assert validate(ENVELOPE | {"event_id": 1, "page": 2}, "sync", ["page"]) == (True, [])


@pytest.mark.parametrize("category", REFERENCES)
async def test_sql_knows_the_references_of_each_category(
    app: Forge, psql: Any, category: str
) -> None:
    await declare(app, category=category)
    names = REFERENCES[category]

    for number, name in enumerate((*names, "order_id", "_id")):
        payload = ENVELOPE | {name: "x", "idempotency_key": f"k{number}"}
        assert not await rejected_by_sql(psql, payload)
    for value in EMPTY:
        payload = ENVELOPE | dict.fromkeys((*names, "order_id"), value) | {"idempotency_key": "e"}
        assert await rejected_by_sql(psql, payload) is bool(names), value
    assert await rejected_by_sql(psql, ENVELOPE | {"orderid": 5}) is bool(names)


@pytest.mark.parametrize("way", WAYS)
async def test_requires_replaces_the_references_of_the_category(
    app: Forge, database_url: str, psql: Any, way: str
) -> None:
    await declare(app, category="sync", requires=["page", "the range"])
    full = ENVELOPE | {"page": 1, "the range": "a-b"}

    await dispatch(way, app, database_url, full)
    for missing in ("page", "the range"):
        given = {name: value for name, value in full.items() if name != missing}
        with pytest.raises(InvalidPayload, match=rf"\$\.{missing} is required"):
            await dispatch(way, app, database_url, given | {"event_id": 5, "idempotency_key": "k"})

    assert await psql.fetchval("select count(*) from forge_jobs") == 1


@pytest.mark.parametrize("way", WAYS)
async def test_an_empty_requires_opts_out(
    app: Forge, database_url: str, psql: Any, way: str
) -> None:
    await declare(app, category="sync", requires=[])

    await dispatch(way, app, database_url, ENVELOPE)

    assert await psql.fetchval("select count(*) from forge_jobs") == 1


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("value", EMPTY, ids=repr)
async def test_requires_applies_without_a_category(
    app: Forge, database_url: str, psql: Any, way: str, value: Any
) -> None:
    await declare(app, requires=["order_id"])

    await dispatch(way, app, database_url, {"order_id": 5})
    for bad in ({}, {"order_id": value}, {"tenant_id": 3}):
        with pytest.raises(InvalidPayload, match=r"\$\.order_id is required"):
            await dispatch(way, app, database_url, bad)

    assert await psql.fetchval("select count(*) from forge_jobs") == 1


async def test_a_bad_payload_anywhere_in_a_bulk_is_rejected(app: Forge, psql: Any) -> None:
    await declare(app, requires=["order_id"])

    with pytest.raises(InvalidPayload, match=r"input 700: .*\$\.order_id"):
        await app.dispatch_many("fetch", ({"order_id": n or None} for n in range(700, -1, -1)))

    assert await psql.fetchval("select count(*) from forge_jobs") == 0
