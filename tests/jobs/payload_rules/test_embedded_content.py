"""Mail bodies and documents: Python and SQL decide alike on one corpus."""

import json
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from forge import Forge, InvalidPayload, JobContext, PayloadValidator
from tests.jobs.payload_rules.ways import ENVELOPE, register_types

CORPUS: dict[str, list[dict[str, Any]]] = json.loads(
    (Path(__file__).parents[2] / "corpus" / "embedded_content.json").read_text()
)


@pytest.fixture
async def keep(app: Forge) -> Forge:
    @app.job(name="keep", category="maintenance")
    async def keep(ctx: JobContext, input: dict[str, Any]) -> None: ...

    await register_types(app)
    return app


def payloads(which: str) -> list[dict[str, Any]]:
    """The payloads of the corpus, each with its own envelope."""
    return [
        ENVELOPE | {"idempotency_key": f"{which} {n}"} | content
        for n, content in enumerate(CORPUS[which])
    ]


def test_the_corpus_has_a_hundred_payloads_of_each_class() -> None:
    assert {which: len({json.dumps(p) for p in found}) for which, found in CORPUS.items()} == {
        "refuse": 100,
        "let_through": 100,
    }


async def test_dispatch_rejects_embedded_content(keep: Forge, psql: Any) -> None:
    through = []
    for payload in payloads("refuse"):
        try:
            await keep.dispatch("keep", payload)
        except InvalidPayload:
            continue
        through.append(payload)

    assert through == []
    assert await psql.fetchval("select count(*) from forge_jobs") == 0


async def test_dispatch_accepts_references(keep: Forge, psql: Any) -> None:
    for payload in payloads("let_through"):
        await keep.dispatch("keep", payload)

    assert await psql.fetchval("select count(*) from forge_jobs") == 100


async def test_sql_rejects_embedded_content(keep: Forge, psql: Any) -> None:
    through = []
    for payload in payloads("refuse"):
        try:
            await psql.execute("select forge_dispatch('keep', $1)", json.dumps(payload))
        except asyncpg.InvalidParameterValueError:
            continue
        through.append(payload)

    assert through == []


async def test_sql_accepts_references(keep: Forge, psql: Any) -> None:
    for payload in payloads("let_through"):
        await psql.execute("select forge_dispatch('keep', $1)", json.dumps(payload))

    assert await psql.fetchval("select count(*) from forge_jobs") == 100


def test_the_validator_agrees_with_the_corpus() -> None:
    def is_valid(payload: Any) -> bool:
        return PayloadValidator.validate_payload(payload, "maintenance")[0]

    assert [payload for payload in payloads("refuse") if is_valid(payload)] == []
    assert [payload for payload in payloads("let_through") if not is_valid(payload)] == []


async def test_content_that_a_type_allows_is_accepted_inside_a_body(app: Forge, psql: Any) -> None:
    @app.job(name="keep", category="maintenance", allow_sensitive=["$.body.text", "$.body.to[*]"])
    async def keep(ctx: JobContext, input: dict[str, Any]) -> None: ...

    await register_types(app)
    payload = ENVELOPE | {"body": {"text": "Hi", "to": ["Ann and Bob"]}}

    await app.dispatch("keep", payload)
    await psql.execute(
        "select forge_dispatch('keep', $1)", json.dumps(payload | {"idempotency_key": "k2"})
    )
    with pytest.raises(InvalidPayload, match=r"\$\.body\.html"):
        await app.dispatch("keep", ENVELOPE | {"body": {"html": "Hi"}})
