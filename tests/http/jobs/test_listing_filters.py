"""Lists of jobs: filters and tenants."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest

from forge import Forge, State, Status
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
    monkeypatch.setattr("forge.http.jobs.paging.WINDOW", 5)
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
