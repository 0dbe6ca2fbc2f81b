"""Idempotency keys over HTTP: the second dispatch returns the first job."""

from typing import Any
from uuid import UUID

import httpx
import pytest

from forge import Forge
from tests.apps import Work
from tests.http.conftest import MakeToken
from tests.http.job_client import add_jobs, dispatched
from tests.store.placing import Psql


@pytest.fixture(autouse=True)
def _jobs(app: Forge) -> None:
    add_jobs(app)


async def test_second_dispatch_with_a_key_returns_the_first_job(
    app: Forge, http: httpx.AsyncClient, token: MakeToken, work: Work
) -> None:
    headers = token("user", tenant=7)
    first = await dispatched(http, headers, idempotency_key="k")
    await work(app)
    await app.handle(first).result(timeout=20)

    answer = await http.post(
        "/_api/jobs/send_mail/dispatch", json={"idempotency_key": "k"}, headers=headers
    )

    assert answer.status_code == 202
    second = answer.json()
    assert (UUID(second["job_id"]), second["status"]) == (first, "completed")
    assert second["deduplicated"] is True


async def test_keys_are_unique_per_tenant(http: httpx.AsyncClient, token: MakeToken) -> None:
    ids = {
        await dispatched(http, token("user", tenant=tenant), idempotency_key="k")
        for tenant in (7, 8, None)
    }

    assert len(ids) == 3


async def test_a_type_with_a_key_of_its_own_is_deduplicated_by_it(
    http: httpx.AsyncClient, token: MakeToken
) -> None:
    ids = [
        await dispatched(http, token("user"), "charge", args={"payment_id": "p1"}) for _ in range(2)
    ]

    assert ids[0] == ids[1]


async def test_status_of_a_pruned_job_is_null(
    http: httpx.AsyncClient, token: MakeToken, psql: "Psql[Any]"
) -> None:
    first = await dispatched(http, token("user"), idempotency_key="k")
    await psql.execute("delete from forge_jobs")

    answer = await http.post(
        "/_api/jobs/send_mail/dispatch", json={"idempotency_key": "k"}, headers=token("user")
    )

    assert answer.json()["status"] is None
    assert UUID(answer.json()["job_id"]) == first
