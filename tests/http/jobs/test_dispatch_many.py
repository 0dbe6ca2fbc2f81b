"""Many jobs in one request, and many requests at once."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import httpx
import pytest

from forge import Forge, Status
from forge.core.new_job import make_new_job
from forge.http.jobs.shapes import MAX_INPUTS
from forge.store import jobs
from forge.store.connection.database import Database
from forge.store.ids import new_id
from tests.faults.kit.process import until
from tests.http.conftest import MakeToken
from tests.http.job_client import add_jobs, dispatched, paths
from tests.store.placing import Psql


@pytest.fixture(autouse=True)
def _jobs(app: Forge) -> None:
    add_jobs(app)


async def test_many_at_once_are_each_dispatched(
    http: httpx.AsyncClient, token: MakeToken, psql: "Psql[Any]"
) -> None:
    callers = [token("user", tenant=tenant) for tenant in (1, 2, None)]

    ids = await asyncio.gather(
        *(dispatched(http, callers[n % 3], args={"n": n}) for n in range(120))
    )

    stored = await psql.fetch("select id, (input ->> 'n')::int as n, tenant_id from forge_jobs")
    assert {row["id"]: row["n"] for row in stored} == {id: n for n, id in enumerate(ids)}
    assert all(row["tenant_id"] == (1, 2, None)[row["n"] % 3] for row in stored)


async def test_refused_dispatch_does_not_affect_its_batch(
    http: httpx.AsyncClient, token: MakeToken, psql: "Psql[Any]"
) -> None:
    await psql.execute(
        "alter table forge_jobs add check (not starts_with(input ->> 'to', 'nobody'))"
    )
    wanted = [{"to": "nobody" if n % 10 == 3 else f"ann {n}"} for n in range(60)]

    answers = await asyncio.gather(
        *(
            http.post("/_api/jobs/send_mail/dispatch", json={"args": args}, headers=token("user"))
            for args in wanted
        )
    )

    assert [answer.status_code for answer in answers] == [
        409 if args["to"] == "nobody" else 202 for args in wanted
    ]
    assert await psql.fetchval("select count(*) from forge_jobs") == 54


async def test_disconnected_caller_does_not_affect_its_batch(
    http: httpx.AsyncClient, token: MakeToken, psql: "Psql[Any]"
) -> None:
    async with psql.transaction():
        await psql.execute("lock table forge_jobs in exclusive mode")
        calls = [
            asyncio.create_task(dispatched(http, token("user"), args={"n": n})) for n in range(40)
        ]
        waiting = "select count(*) from pg_locks where not granted"
        await until(lambda: psql.fetchval(waiting), 10, "they wait for the table")
        calls[-1].cancel()
        calls[0].cancel()
        await asyncio.wait([calls[0], calls[-1]])
    ids = await asyncio.gather(*calls[1:-1])

    stored = {row["id"] for row in await psql.fetch("select id from forge_jobs")}
    assert stored >= set(ids)
    assert len(set(ids)) == 38


async def test_all_of_many_are_made(
    http: httpx.AsyncClient, token: MakeToken, psql: "Psql[Any]"
) -> None:
    inputs = [{"n": n} for n in range(2500)]

    answer = await http.post(
        "/_api/jobs/send_mail/dispatch_many",
        json={"inputs": inputs, "priority": "low"},
        headers=token("user", tenant=7),
    )

    assert (answer.status_code, answer.json()) == (202, {"count": 2500})
    stored = await psql.fetch(
        "select priority, tenant_id, queue, auth ->> 'name' as by from forge_jobs order by id"
    )
    assert len(stored) == 2500
    assert {tuple(row) for row in stored} == {(25, 7, "mail", "ann")}


async def test_none_of_many_is_made_when_one_is_bad(
    http: httpx.AsyncClient, token: MakeToken, psql: "Psql[Any]"
) -> None:
    inputs: list[Any] = [{"format": "csv"}] * 5
    inputs[2] = {"rows": 1}
    inputs[4] = "csv"

    answer = await http.post(
        "/_api/jobs/export_users/dispatch_many", json={"inputs": inputs}, headers=token("user")
    )

    assert paths(answer) == ["$.inputs[2].format", "$.inputs[4]"]
    assert await psql.fetchval("select count(*) from forge_jobs") == 0


async def test_those_of_many_whose_key_is_known_are_not_made_again(
    http: httpx.AsyncClient, token: MakeToken
) -> None:
    async def made(*payments: str) -> int:
        inputs = [{"payment_id": payment} for payment in payments]
        answer = await http.post(
            "/_api/jobs/charge/dispatch_many", json={"inputs": inputs}, headers=token("user")
        )
        return int(answer.json()["count"])

    assert await made("a", "b", "a") == 2
    assert await made("b", "c") == 1


async def test_too_many_at_once_are_refused(http: httpx.AsyncClient, token: MakeToken) -> None:
    body = {"inputs": [0] * (MAX_INPUTS + 1)}

    answer = await http.post("/_api/jobs/send_mail/dispatch_many", json=body, headers=token("user"))

    assert paths(answer) == ["$.inputs"]
    assert str(MAX_INPUTS) in answer.json()["detail"]


async def test_batched_jobs_are_stored_like_single_ones(app: Forge, database: Database) -> None:
    job_types = [app.definitions[name].job_type for name in ("send_mail", "export_users")]
    soon = datetime.now(UTC) + timedelta(hours=1)
    options: list[Any] = [
        {},
        {"delay": "1h", "priority": "low"},
        {"scheduled_at": soon, "expires_at": soon, "tenant_id": 3, "queue": "q"},
        {"correlation_id": uuid4(), "auth": {"name": "ann"}},
    ]
    new_jobs = [make_new_job(job_type, each) for job_type in job_types for each in options]
    together = [(new_id(), '{"a": 1}', new_job) for new_job in new_jobs]
    alone = [(new_id(), '{"a": 1}', new_job) for new_job in new_jobs]

    await database.run(jobs.dispatch_each(together))
    for id, text, new_job in alone:
        await database.run(jobs.dispatch([id], [text], new_job))

    for (one, _, new_job), (other, _, _) in zip(together, alone, strict=True):
        assert jobs.fits_each(new_job)
        found = {row["id"]: dict(row) for row in await database.run(jobs.get([one, other]))}
        wait = [found[id]["scheduled_at"] - found[id]["created_at"] for id in (one, other)]
        assert new_job.scheduled_at is not None or wait[0] == wait[1]
        for row in found.values():
            assert Status(row["status"]) is Status.PENDING
            for own in ("id", "created_at") + (() if new_job.scheduled_at else ("scheduled_at",)):
                del row[own]
        assert found[one] == found[other]


def test_job_with_extra_options_is_inserted_alone(app: Forge) -> None:
    job_type = app.definitions["send_mail"].job_type
    more: list[Any] = [
        {"tags": ["a"]},
        {"meta": {"a": 1}},
        {"payload_version": "2.0"},
        {"retry_of": uuid4()},
    ]

    assert [jobs.fits_each(make_new_job(job_type, options)) for options in more] == [False] * len(
        more
    )
