"""Requests about a job: made by the server, carried out by a worker."""

import asyncio
import json
from datetime import timedelta
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
# The body that a request needs.
CHANGES: dict[str, dict[str, Any]] = {
    "reschedule": {"delay": "2h"},
    "reprioritise": {"priority": "low"},
    "move": {"queue": "bulk"},
}
REQUESTS |= dict.fromkeys(CHANGES, "POST")


@pytest.fixture(autouse=True)
def _jobs(app: Forge) -> None:
    add_jobs(app)


async def ask(
    http: httpx.AsyncClient, headers: dict[str, str], job_id: UUID, verb: str, **body: Any
) -> httpx.Response:
    path = f"/_api/jobs/{job_id}/{verb}".rstrip("/")
    body = CHANGES.get(verb, {}) | body
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
    assert await audited(psql, job_id) == [("job_cancelled", "ada", 7, "no longer wanted")]
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

    manager = token("staff", "manager", tenant=7, name="max")

    answer = await ask(http, manager, job_id, "", reason="a duplicate")

    assert answer.status_code == 202
    await app.handle(UUID(answer.json()["job_id"])).result(timeout=20)
    gone = await http.get(f"/_api/jobs/{job_id}", headers=token("user", tenant=7))
    assert code(gone) == (404, "not_found")
    assert await audited(psql, job_id) == [("job_deleted", "max", 7, "a duplicate")]


async def test_an_operators_request_is_made_for_the_jobs_tenant(
    app: Forge, http: httpx.AsyncClient, token: MakeToken, psql: "Psql[Any]"
) -> None:
    job_id = await dispatched(http, token("user", tenant=7))

    answer = await ask(http, token("user", name="root"), job_id, "cancel")

    request = await app.get(UUID(answer.json()["job_id"]))
    assert (request.tenant_id, request.auth["actor"]) == (7, "root")


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
    **{verb: {"pending", "retry"} for verb in CHANGES},
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


async def test_waiting_job_gets_another_time_priority_and_queue_with_one_event_each(
    app: Forge, http: httpx.AsyncClient, token: MakeToken, work: Work, psql: "Psql[Any]"
) -> None:
    await work(app)
    user = token("user", tenant=7, name="ada")
    job_id = await dispatched(http, user, delay="1h")
    before = await app.get(job_id)

    for verb in CHANGES:
        answer = await ask(http, user, job_id, verb, reason=f"why {verb}")
        assert answer.status_code == 202
        await app.handle(UUID(answer.json()["job_id"])).result(timeout=20)
        again = await ask(http, user, job_id, verb) if verb != "reschedule" else None
        if again is not None:  # nothing is left to change
            output = await app.handle(UUID(again.json()["job_id"])).result(timeout=20)
            assert output["done"] == "unchanged"

    after = await app.get(job_id)
    assert (after.priority, after.queue) == (25, "bulk")
    hour_later = after.scheduled_at - before.scheduled_at
    assert timedelta(minutes=59) < hour_later < timedelta(minutes=62)
    assert await audited(psql, job_id) == [
        ("job_rescheduled", "ada", 7, "why reschedule"),
        ("job_reprioritised", "ada", 7, "why reprioritise"),
        ("job_moved", "ada", 7, "why move"),
    ]
    details = await psql.fetch("select detail from forge_audit_events order by id")
    assert json.loads(details[0]["detail"]).keys() == {"scheduled_at"}
    assert json.loads(details[1]["detail"]) == {"priority": 25, "was": 75}
    assert json.loads(details[2]["detail"]) == {"queue": "bulk", "was": "mail"}


async def test_users_cannot_put_a_job_before_the_others_of_its_type(
    http: httpx.AsyncClient, app: Forge, token: MakeToken, psql: "Psql[Any]"
) -> None:
    user, staff = token("user"), token("staff")
    job_id = await dispatched(http, user, delay="1h")
    past = {"scheduled_at": "2020-01-01T00:00:00Z", "delay": None}

    refused = await ask(http, user, job_id, "reprioritise", priority="critical")
    allowed = await ask(http, staff, job_id, "reprioritise", priority="critical")
    by_user = await ask(http, user, job_id, "reschedule", **past)
    by_staff = await ask(http, staff, job_id, "reschedule", **past)

    assert code(refused) == (403, "priority_too_high")
    assert allowed.status_code == 202
    assert (by_user.status_code, by_staff.status_code) == (202, 202), by_user.text
    inputs = [(await app.get(a.json()["job_id"])).input for a in (by_user, by_staff)]
    assert [(i["delay"] is not None, i["at"]) for i in inputs] == [
        (True, None),
        (False, "2020-01-01T00:00:00Z"),
    ]


@pytest.mark.parametrize(
    ("verb", "body", "status"),
    [
        ("reschedule", {"delay": None}, 422),
        ("reschedule", {"scheduled_at": "2135-01-01T00:00:00Z"}, 422),
        ("reschedule", {"delay": "soon"}, 422),
        ("reprioritise", {"priority": 60}, 422),
        ("move", {"queue": "forge"}, 422),
        ("move", {"queue": " "}, 422),
    ],
)
async def test_what_a_job_cannot_be_changed_to_is_refused(
    http: httpx.AsyncClient,
    token: MakeToken,
    psql: "Psql[Any]",
    verb: str,
    body: dict[str, Any],
    status: int,
) -> None:
    user = token("user")
    job_id = await dispatched(http, user, delay="1h")

    answer = await ask(http, user, job_id, verb, **body)

    assert (answer.status_code, answer.json()["code"]) == (status, "invalid")
    assert await psql.fetchval("select count(*) from forge_jobs") == 1


async def test_builtin_jobs_keep_their_queue_and_priority(
    app: Forge, http: httpx.AsyncClient, token: MakeToken
) -> None:
    job_id = await dispatched(http, token("user"))
    request = await app.cancel(job_id, delay="1h")

    for verb in ("reprioritise", "move"):
        assert code(await ask(http, token("user"), request.id, verb)) == (403, "forbidden")
