"""Requests about a job: made by the server, carried out by a worker."""

import asyncio
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest

from forge import Forge, JobContext, Status
from tests.apps import Work
from tests.http.conftest import MakeToken
from tests.http.job_client import add_jobs, code, dispatched
from tests.store.placing import Psql, placed

REQUESTS = {"cancel": "POST", "run_now": "POST", "": "DELETE"}


@pytest.fixture(autouse=True)
def _jobs(app: Forge) -> None:
    add_jobs(app)


async def ask(
    http: httpx.AsyncClient, headers: dict[str, str], job_id: UUID, verb: str, **body: Any
) -> httpx.Response:
    path = f"/_api/jobs/{job_id}/{verb}".rstrip("/")
    return await http.request(REQUESTS[verb], path, headers=headers, json=body or None)


async def audited(psql: "Psql[Any]", job_id: UUID) -> list[tuple[Any, ...]]:
    rows = await psql.fetch(
        "select event, actor, tenant_id, notes from forge_audit_events where job_id = $1"
        " order by id",
        job_id,
    )
    return [tuple(row) for row in rows]


async def test_a_running_job_is_cancelled(
    app: Forge, http: httpx.AsyncClient, token: MakeToken, work: Work, psql: "Psql[Any]"
) -> None:
    began = asyncio.Event()

    @app.job
    async def linger(ctx: JobContext) -> None:
        began.set()
        await asyncio.Event().wait()

    await work(app)
    user = token("user", tenant=7, name="ada")
    job_id = await dispatched(http, user, "linger")
    await asyncio.wait_for(began.wait(), 20)

    answer = await ask(http, user, job_id, "cancel", reason="no longer wanted")

    assert answer.status_code == 202
    made = answer.json()
    assert (made["job_type"], made["target_id"]) == ("forge.cancel", str(job_id))
    await app.handle(UUID(made["job_id"])).result(timeout=20)
    assert (await app.get(job_id)).status is Status.CANCELLED
    assert await audited(psql, job_id) == [
        ("job_cancel_requested", "ada", 7, "no longer wanted"),
        ("job_cancelled", "ada", 7, "no longer wanted"),
    ]
    # The caller may follow the request.
    request = await http.get(f"/_api/jobs/{made['job_id']}", headers=user)
    assert request.json()["status"] == "completed"


async def test_a_job_that_waits_runs_now(
    app: Forge, http: httpx.AsyncClient, token: MakeToken, work: Work
) -> None:
    await work(app)
    user = token("user", tenant=7)
    job_id = await dispatched(http, user, delay="1h")

    answer = await ask(http, user, job_id, "run_now")

    assert answer.status_code == 202
    await app.handle(job_id).result(timeout=20)


async def test_a_job_that_is_over_is_deleted(
    app: Forge, http: httpx.AsyncClient, token: MakeToken, work: Work, psql: "Psql[Any]"
) -> None:
    await work(app)
    job_id = await dispatched(http, token("user", tenant=7))
    await app.handle(job_id).result(timeout=20)

    answer = await ask(http, token("staff", "manager", tenant=7, name="max"), job_id, "")

    assert answer.status_code == 202
    await app.handle(UUID(answer.json()["job_id"])).result(timeout=20)
    gone = await http.get(f"/_api/jobs/{job_id}", headers=token("user", tenant=7))
    assert code(gone) == (404, "not_found")
    assert [row[:2] for row in await audited(psql, job_id)] == [
        ("job_delete_requested", "max"),
        ("job_deleted", "max"),
    ]


async def test_an_operators_request_is_made_for_the_jobs_tenant(
    app: Forge, http: httpx.AsyncClient, token: MakeToken, psql: "Psql[Any]"
) -> None:
    job_id = await dispatched(http, token("user", tenant=7))

    answer = await ask(http, token("user", name="root"), job_id, "cancel")

    request = await app.get(UUID(answer.json()["job_id"]))
    assert request.tenant_id == 7
    assert await audited(psql, job_id) == [("job_cancel_requested", "root", 7, None)]


@pytest.mark.parametrize("verb", REQUESTS)
async def test_requests_for_other_tenants_jobs_are_not_found(
    http: httpx.AsyncClient, token: MakeToken, psql: "Psql[Any]", verb: str
) -> None:
    others = await dispatched(http, token("user", tenant=8))
    nobodys = await dispatched(http, token("user"))
    caller = token("user", "staff", "manager", tenant=7)

    answers = [await ask(http, caller, each, verb) for each in (others, nobodys, uuid4())]

    assert [code(answer) for answer in answers] == [(404, "not_found")] * 3
    assert await psql.fetchval("select count(*) from forge_jobs") == 2
    assert await psql.fetchval("select count(*) from forge_audit_events") == 0


ALLOWED = {
    "cancel": {"pending", "retry", "claimed", "running"},
    "run_now": {"pending", "retry"},
    "": {"pending", "retry", "completed", "failed", "dead_letter", "cancelled"},
}


@pytest.mark.parametrize("status", Status)
async def test_request_in_a_wrong_status_is_a_conflict(
    http: httpx.AsyncClient, token: MakeToken, psql: "Psql[Any]", status: Status
) -> None:
    job_id = await placed(psql, status, worker=uuid4())
    caller = token("user", "staff", "manager")

    for verb, statuses in ALLOWED.items():
        answer = await ask(http, caller, job_id, verb)
        if status in statuses:
            assert answer.status_code == 202
        else:
            assert code(answer) == (409, "conflict")


async def test_delete_requires_manager(http: httpx.AsyncClient, token: MakeToken) -> None:
    job_id = await dispatched(http, token("user"))

    for roles in (["user"], ["staff"], ["manager"], ["user", "manager"]):
        assert code(await ask(http, token(*roles), job_id, "")) == (403, "forbidden")
