"""Mail bodies and documents: one corpus that Python and SQL refuse and let through alike."""

import json
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from forge import Forge, InvalidPayload, JobContext, PayloadValidator
from tests.flow.payload_rules.ways import ENVELOPE, make_known

CORPUS: dict[str, list[dict[str, Any]]] = json.loads(
    (Path(__file__).parents[2] / "corpus" / "embedded_content.json").read_text()
)


@pytest.fixture
async def keep(app: Forge) -> Forge:
    @app.job(name="keep", category="maintenance")
    async def keep(ctx: JobContext, input: dict[str, Any]) -> None: ...

    await make_known(app)
    return app


def payloads(which: str) -> list[dict[str, Any]]:
    """Each with an envelope of its own."""
    return [
        ENVELOPE | {"idempotency_key": f"{which} {n}"} | content
        for n, content in enumerate(CORPUS[which])
    ]


def test_the_corpus_has_a_hundred_of_each() -> None:
    assert {which: len({json.dumps(p) for p in found}) for which, found in CORPUS.items()} == {
        "refuse": 100,
        "let_through": 100,
    }


async def test_dispatch_refuses_embedded_content(keep: Forge, psql: Any) -> None:
    through = []
    for payload in payloads("refuse"):
        try:
            await keep.dispatch("keep", payload)
        except InvalidPayload:
            continue
        through.append(payload)

    assert through == []
    assert await psql.fetchval("select count(*) from forge_jobs") == 0


async def test_dispatch_lets_references_through(keep: Forge, psql: Any) -> None:
    for payload in payloads("let_through"):
        await keep.dispatch("keep", payload)

    assert await psql.fetchval("select count(*) from forge_jobs") == 100


async def test_sql_refuses_embedded_content(keep: Forge, psql: Any) -> None:
    through = []
    for payload in payloads("refuse"):
        try:
            await psql.execute("select forge_dispatch('keep', $1)", json.dumps(payload))
        except asyncpg.InvalidParameterValueError:
            continue
        through.append(payload)

    assert through == []


async def test_sql_lets_references_through(keep: Forge, psql: Any) -> None:
    for payload in payloads("let_through"):
        await psql.execute("select forge_dispatch('keep', $1)", json.dumps(payload))

    assert await psql.fetchval("select count(*) from forge_jobs") == 100


def test_the_validator_agrees_with_the_corpus() -> None:
    def is_valid(payload: Any) -> bool:
        return PayloadValidator.validate_payload(payload, "maintenance")[0]

    assert [payload for payload in payloads("refuse") if is_valid(payload)] == []
    assert [payload for payload in payloads("let_through") if not is_valid(payload)] == []


async def test_what_a_type_allows_is_let_through_inside_of_a_body_too(
    app: Forge, psql: Any
) -> None:
    @app.job(name="keep", category="maintenance", allow_sensitive=["$.body.text", "$.body.to[*]"])
    async def keep(ctx: JobContext, input: dict[str, Any]) -> None: ...

    await make_known(app)
    payload = ENVELOPE | {"body": {"text": "Hi", "to": ["Ann and Bob"]}}

    await app.dispatch("keep", payload)
    await psql.execute(
        "select forge_dispatch('keep', $1)", json.dumps(payload | {"idempotency_key": "k2"})
    )
    with pytest.raises(InvalidPayload, match=r"\$\.body\.html"):
        await app.dispatch("keep", ENVELOPE | {"body": {"html": "Hi"}})
