"""Many jobs with a category in one request: the payload rules apply to each input."""

import logging
from typing import Any
from uuid import uuid4

import httpx
import pytest
from pydantic import BaseModel

from forge import Forge, JobContext
from tests.http.conftest import MakeToken
from tests.http.job_client import paths
from tests.store.placing import Psql

CORRELATION = str(uuid4())


class Event(BaseModel):
    """What happened; whatever else is sent is left out."""

    number: int


@pytest.fixture(autouse=True)
def _jobs(app: Forge) -> None:
    @app.job(category="sync", requires=["number"])
    async def pull(ctx: JobContext, input: Event) -> None: ...

    @app.job
    async def plain(ctx: JobContext, input: dict[str, Any]) -> None: ...


async def send(
    http: httpx.AsyncClient, headers: dict[str, str], inputs: list[Any], job_type: str = "pull"
) -> httpx.Response:
    return await http.post(
        f"/_api/jobs/{job_type}/dispatch_many",
        json={"inputs": inputs, "correlation_id": CORRELATION},
        headers=headers,
    )


async def test_each_has_the_key_that_stands_in_its_own_input(
    http: httpx.AsyncClient, token: MakeToken, psql: "Psql[Any]"
) -> None:
    inputs = [{"number": n, "idempotency_key": f"event {n}"} for n in range(3)]

    first = await send(http, token("user", tenant=7), inputs)
    again = await send(http, token("user", tenant=7), [*inputs, inputs[0] | {"number": 3}])

    assert (first.status_code, first.json()) == (202, {"count": 3})
    assert (again.status_code, again.json()) == (202, {"count": 0})
    stored = await psql.fetch(
        "select idempotency_key, input from forge_jobs order by created_at, id"
    )
    assert [row["idempotency_key"] for row in stored] == ["event 0", "event 1", "event 2"]
    assert '"idempotency_key": "event 0"' in stored[0]["input"]
    assert f'"correlation_id": "{CORRELATION}"' in stored[0]["input"]


async def test_an_input_that_breaks_the_rules_is_named(
    http: httpx.AsyncClient, token: MakeToken, psql: "Psql[Any]"
) -> None:
    inputs = [{"number": 0, "idempotency_key": "a"}, {"number": 1}]

    answer = await send(http, token("user", tenant=7), inputs)

    assert paths(answer) == ["$.inputs[1].idempotency_key"]
    assert await psql.fetchval("select count(*) from forge_jobs") == 0


async def test_secret_is_refused_even_if_the_model_drops_it(
    http: httpx.AsyncClient, token: MakeToken
) -> None:
    inputs = [{"number": 0, "idempotency_key": "a", "password": "hunter2"}]

    answer = await send(http, token("user", tenant=7), inputs)

    assert paths(answer) == ["$.inputs[0].password"]
    assert "hunter2" not in answer.text


async def test_sensitive_payload_without_a_category_is_a_warning(
    http: httpx.AsyncClient, token: MakeToken, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "forge"):
        answer = await send(http, token("user"), [{"password": "hunter2"}], "plain")

    assert answer.status_code == 202
    assert "$.password" in caplog.text
    assert "hunter2" not in caplog.text
