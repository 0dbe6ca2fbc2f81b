"""Lists of jobs: filters and tenants."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest

from forge import Forge, State, Status
from forge.jobs import counts as counting
from forge.store import listing
from tests.http.conftest import MakeToken
from tests.http.job_client import add_jobs, code, dispatched, paths
from tests.store.placing import Psql

WORKER = UUID(int=1)


@pytest.fixture(autouse=True)
def _jobs(app: Forge) -> None:
    add_jobs(app)


@pytest.fixture
def moved(psql: "Psql[Any]") -> Any:
    """Move a job as a worker would, by hand."""

    async def move(job_id: UUID, status: Status, error: str | None = None) -> None:
        if status not in (Status.PENDING, Status.CANCELLED):
            await psql.execute(
                "update forge_jobs set status = 'running', lease = 1, attempts = 1, worker_id = $2"
                " where id = $1",
                job_id,
                WORKER,
            )
        await psql.execute(
            "update forge_jobs set status = $2, last_error = $3 where id = $1",
            job_id,
            str(status),
            error,
        )

    return move


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({}, "abcdef"),
        ({"status": "pending"}, "abf"),
        ({"status": "running"}, "c"),
        ({"status": "completed"}, "d"),
        ({"status": "dead_letter"}, "e"),
        ({"status": "failed"}, ""),
        ({"state": "queued"}, "abf"),
        ({"state": "processing"}, "c"),
        ({"state": "failed"}, "e"),
        ({"status": "pending", "state": "failed"}, ""),
        ({"type": "send_mail"}, "abcde"),
        ({"type": "nobody"}, ""),
        ({"queue": "slow"}, "b"),
        ({"priority": "low"}, "b"),
        ({"priority": "LOW"}, "b"),
        ({"priority": "25"}, "b"),
        ({"priority": 75, "status": "pending"}, "a"),
        ({"type": "send_mail", "queue": "mail", "state": "failed"}, "e"),
    ],
)
async def test_filters_by_attribute(
    http: httpx.AsyncClient, token: MakeToken, moved: Any, asked: dict[str, Any], found: str
) -> None:
    user = token("user")
    names: dict[str, str] = {}
    for name in "abcde":
        more = {"queue": "slow", "priority": "low"} if name == "b" else {}
        names[str(await dispatched(http, user, **more))] = name
    export = await dispatched(http, user, "export_users", args={"format": "csv"})
    names[str(export)] = "f"
    ids = {name: UUID(id) for id, name in names.items()}
    await moved(ids["c"], Status.RUNNING)
    await moved(ids["d"], Status.COMPLETED)
    await moved(ids["e"], Status.DEAD_LETTER, "boom")

    for headers in (user, token("staff")):
        page = (await http.get("/_api/jobs", params=asked, headers=headers)).json()
        assert sorted(names[job["id"]] for job in page["items"]) == sorted(found)
        assert not page["stopped_early"]


PARENT, CORRELATION = UUID(int=5), UUID(int=6)


@pytest.fixture
async def related(psql: "Psql[Any]") -> None:
    """Place a job for each filter that is about other things, named in its input."""
    for name, column, value in (
        ("child", "parent_id", PARENT),
        ("again", "retry_of", PARENT),
        ("tied", "correlation_id", CORRELATION),
        ("keyed", "idempotency_key", "key 1"),
        ("sync", "category", "sync"),
        ("tagged", "tags", ["a", "b"]),
        ("worked", "worker_id", WORKER),
        ("unlucky", "error_class", "transient"),
        ("foreign", "tenant_id", 7),
        ("none", "tenant_id", None),
    ):
        sql = f"insert into forge_jobs (job_type, input, {column}) values ('t', $1, $2)"
        if column in ("worker_id", "error_class"):
            sql = "insert into forge_jobs (job_type, input) values ('t', $1) returning id"
            job_id = await psql.fetchval(sql, f'{{"name": "{name}"}}')
            await psql.execute(f"update forge_jobs set {column} = $2 where id = $1", job_id, value)
        else:
            await psql.execute(sql, f'{{"name": "{name}"}}', value)


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({"parent_id": PARENT}, ["child"]),
        ({"parent_id": PARENT, "type": "other"}, []),
        ({"retry_of": PARENT}, ["again"]),
        ({"correlation_id": CORRELATION}, ["tied"]),
        ({"idempotency_key": "key 1"}, ["keyed"]),
        ({"idempotency_key": "key"}, []),
        ({"category": "sync"}, ["sync"]),
        ({"tag": "b"}, ["tagged"]),
        ({"tag": "c"}, []),
        ({"worker_id": WORKER}, ["worked"]),
        ({"error_class": "transient"}, ["unlucky"]),
        ({"tenant_id": 7}, ["foreign"]),
        ({"parent_id": PARENT, "correlation_id": CORRELATION}, []),
        ({"input.name": "none"}, ["none"]),
        ({"type": "t", "input.name": "child", "input.other": "x"}, []),
    ],
    ids=str,
)
@pytest.mark.usefixtures("related")
async def test_lists_counts_and_the_queue_of_managers_filter_alike(
    http: httpx.AsyncClient, token: MakeToken, asked: dict[str, Any], found: list[str]
) -> None:
    manager = token("staff", "manager")

    page = (await http.get("/_api/jobs", params=asked, headers=manager)).json()
    summaries = (await http.get("/_api/jobs?view=summary", params=asked, headers=manager)).json()

    assert [job["input"]["name"] for job in page["items"]] == found
    assert [job["id"] for job in summaries["items"]] == [job["id"] for job in page["items"]]
    if not any(name.startswith("input.") for name in asked):
        queue = (await http.get("/api/jobs/admin/queue/", params=asked, headers=manager)).json()
        counts = (await http.get("/_api/jobs/counts", params=asked, headers=manager)).json()
        assert queue["total_count"] == len(queue["jobs"]) == len(found)
        pending = {"count": len(found), "precision": "exact"}
        assert counts["by_status"]["pending"] == pending
        assert counts["by_type"].get("t", {"all": {"count": 0}})["all"]["count"] == len(found)


@pytest.mark.usefixtures("related")
async def test_a_tenant_cannot_filter_by_another_tenant_or_reach_its_jobs_by_relation(
    http: httpx.AsyncClient, token: MakeToken
) -> None:
    tenant = token("user", tenant=7)

    for route in ("/_api/jobs", "/_api/jobs/counts"):
        refused = await http.get(f"{route}?tenant_id=8", headers=tenant)
        assert code(refused) == (403, "forbidden")
    page = (await http.get(f"/_api/jobs?parent_id={PARENT}", headers=tenant)).json()
    counts = await http.get(f"/_api/jobs/counts?correlation_id={CORRELATION}", headers=tenant)

    assert page["items"] == []
    assert counts.json()["by_type"] == {}


async def test_a_summary_has_all_but_the_payloads_and_no_secret_of_them(
    http: httpx.AsyncClient, token: MakeToken, psql: "Psql[Any]"
) -> None:
    await dispatched(http, token("user"), args={"password": "correct horse", "n": 1}, tags=["x"])
    await dispatched(http, token("user"), args={"text": "x" * 100_000})
    await psql.execute(
        "update forge_jobs set last_error = 'refused: correct horse' where input ? 'password'"
    )

    found = (await http.get("/_api/jobs?view=summary", headers=token("user"))).json()
    full = (await http.get("/_api/jobs", headers=token("user"))).json()

    assert found["next_cursor"] is None
    assert "horse" not in str(found)
    for summary, job in zip(found["items"], full["items"], strict=True):
        payloads = {name: job.pop(name) for name in ("input", "output", "checkpoint", "meta")}
        assert summary == job
        assert payloads["input"]


async def test_counts_of_more_than_are_read_are_at_least(
    http: httpx.AsyncClient, token: MakeToken, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counting, "EXACT_LIMIT", 4)
    for n in range(6):
        await dispatched(http, token("user"), args={"n": n}, queue="slow" if n % 2 else "quick")

    counts = (await http.get("/_api/jobs/counts?queue=slow", headers=token("user"))).json()

    assert counts["by_status"]["pending"] == {"count": 3, "precision": "at_least"}


async def test_filters_by_creation_time(
    http: httpx.AsyncClient, token: MakeToken, psql: "Psql[Any]"
) -> None:
    now = datetime.now(UTC).replace(microsecond=0)
    for days in range(5):
        at = now - timedelta(days=days)
        id = UUID(int=(int(at.timestamp() * 1000) << 80) | 0x7000_8000_0000_0000_0000 + days)
        await psql.execute(
            "insert into forge_jobs (id, job_type, created_at, input) values ($1, 't', $2, $3)",
            id,
            at,
            f'{{"days": {days}}}',
        )

    async def days(**asked: datetime) -> list[int]:
        params = {name: at.isoformat() for name, at in asked.items()}
        page = (await http.get("/_api/jobs", params=params, headers=token("user"))).json()
        return [job["input"]["days"] for job in page["items"]]

    assert await days(since=now - timedelta(days=2)) == [0, 1, 2]
    assert await days(until=now - timedelta(days=2)) == [3, 4]
    assert await days(since=now - timedelta(days=3), until=now - timedelta(days=1)) == [2, 3]
    assert await days(since=now + timedelta(hours=1)) == []


async def test_a_tenant_sees_its_own_jobs_and_an_operator_all(
    http: httpx.AsyncClient, token: MakeToken, psql: "Psql[Any]"
) -> None:
    made = {
        tenant: str(await dispatched(http, token("user"), tenant_id=tenant)) for tenant in (7, 8)
    }
    nobodys = str(await dispatched(http, token("user")))

    async def seen(tenant: int | None) -> set[str]:
        page = (await http.get("/_api/jobs", headers=token("user", tenant=tenant))).json()
        return {job["id"] for job in page["items"]}

    assert await seen(7) == {made[7]}
    assert await seen(8) == {made[8]}
    assert await seen(9) == set()
    assert await seen(None) == {made[7], made[8], nobodys}


@pytest.mark.parametrize("route", ["", "/attempts"])
async def test_job_of_another_tenant_is_not_found(
    http: httpx.AsyncClient, token: MakeToken, route: str
) -> None:
    others = await dispatched(http, token("user", tenant=8))
    nobodys = await dispatched(http, token("user"))

    for job_id in (others, nobodys, uuid4()):
        answer = await http.get(
            f"/_api/jobs/{job_id}{route}", headers=token("user", "staff", tenant=7)
        )
        assert code(answer) == (404, "not_found")


async def test_few_live_jobs_are_found_however_many_ended_after_them(
    http: httpx.AsyncClient, token: MakeToken, moved: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "WINDOW", 5)
    user = token("user", tenant=7)
    waits = str(await dispatched(http, user))
    failed = await dispatched(http, user)
    await moved(failed, Status.FAILED)
    for _ in range(8):
        await moved(await dispatched(http, user), Status.COMPLETED)

    for headers in (user, token("user")):
        page = (await http.get("/_api/jobs", params={"status": "pending"}, headers=headers)).json()
        assert [job["id"] for job in page["items"]] == [waits]
        assert (page["next_cursor"], page["stopped_early"]) == (None, False)
    ended = (await http.get("/_api/jobs?status=failed", headers=token("user"))).json()
    assert [job["id"] for job in ended["items"]] == [str(failed)]


@pytest.mark.parametrize(
    ("asked", "path"),
    [
        ({"status": "done"}, "query.status"),
        ({"state": "pending"}, "query.state"),
        ({"priority": "urgent"}, "query.priority"),
        ({"limit": 0}, "query.limit"),
        ({"limit": 201}, "query.limit"),
        ({"since": "yesterday"}, "query.since"),
        ({"until": "2026-01-01T00:00:00"}, "query.until"),
        ({"q": ""}, "query.q"),
        ({"cursor": "x"}, "query.cursor"),
        ({"cursor": "é"}, "query.cursor"),
        ({"cursor": "A" * 23}, "query.cursor"),
    ],
)
async def test_a_bad_filter_is_refused_with_its_name(
    http: httpx.AsyncClient, token: MakeToken, asked: dict[str, Any], path: str
) -> None:
    answer = await http.get("/_api/jobs", params=asked, headers=token("user"))

    assert paths(answer) == [path]


def test_every_status_has_its_state_in_the_filters() -> None:
    assert {status.state for status in Status} == set(State)
