"""The audit log over HTTP: access, filters and pages."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import httpx
import pytest

from forge import Forge
from forge.store import audit
from tests.apps import Work
from tests.http.conftest import MakeToken
from tests.http.job_client import add_jobs, code, dispatched, paths

FILL = """insert into forge_audit_events (event, actor, tenant_id, notes, detail)
select 'event_' || n % 2, case when n % 3 = 0 then 'ann' else 'bob' end, n % 4, 'note ' || n,
       jsonb_build_object('n', n)
from generate_series(1, $1::int) as n"""


@pytest.fixture
def read(http: httpx.AsyncClient, token: MakeToken) -> Any:
    """Read the audit log as staff, of one tenant or of all."""

    async def read(tenant: int | None = None, **asked: Any) -> Any:
        headers = token("staff", tenant=tenant)
        answer = await http.get("/_api/audit", params=asked, headers=headers)
        assert answer.status_code == 200, answer.text
        return answer.json()

    return read


async def test_events_have_actor_and_reason(
    app: Forge, http: httpx.AsyncClient, token: MakeToken, read: Any, work: Work
) -> None:
    add_jobs(app)
    await work(app)
    user = token("user", tenant=7)
    job_id = await dispatched(http, user, delay="1h")
    reason = {"reason": "sent twice"}
    answer = await http.post(f"/_api/jobs/{job_id}/cancel", json=reason, headers=user)
    await app.handle(answer.json()["job_id"]).result(timeout=20)

    (event,) = (await read(tenant=7))["items"]

    assert event.pop("created_at").endswith("Z")
    assert event == {
        "id": event["id"],
        "event": "job_cancelled",
        "actor": "ann",
        "tenant_id": 7,
        "job_id": str(job_id),
        "dlq_id": None,
        "schedule_id": None,
        "notes": "sent twice",
        "detail": None,
    }
    assert (await read(tenant=8))["items"] == []
    assert (await read(job_id=str(job_id)))["items"][0]["id"] == event["id"]


async def test_pages_are_newest_first(read: Any, psql: Any) -> None:
    await psql.execute(FILL, 25)

    seen, cursor = [], None
    while cursor or not seen:
        page = await read(limit=10, **({"cursor": cursor} if cursor else {}))
        seen += [event["detail"]["n"] for event in page["items"]]
        cursor = page["next_cursor"]

    assert seen == list(range(25, 0, -1))


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({"event": "event_1"}, 12),
        ({"actor": "ann"}, 8),
        ({"event": "event_1", "actor": "ann"}, 4),
        ({"tenant_id": 3}, 6),
        ({"dlq_id": 5}, 0),
    ],
    ids=str,
)
async def test_filters(read: Any, psql: Any, asked: Any, found: int) -> None:
    await psql.execute(FILL, 24)

    assert len((await read(**asked))["items"]) == found


async def test_filters_by_schedule_and_time(read: Any, psql: Any) -> None:
    schedule = UUID(int=3)
    await psql.execute(FILL, 4)
    await psql.execute(
        "insert into forge_audit_events (event, schedule_id) values ('schedule_enabled', $1)",
        schedule,
    )
    times = [row["created_at"] for row in await psql.fetch("select * from forge_audit_events")]

    (event,) = (await read(schedule_id=str(schedule)))["items"]

    assert (event["event"], event["schedule_id"]) == ("schedule_enabled", str(schedule))
    assert len((await read(since=max(times).isoformat()))["items"]) == 1
    assert len((await read(until=max(times).isoformat()))["items"]) == 4
    assert (await read(since=(max(times) + timedelta(hours=2)).isoformat()))["items"] == []


async def test_a_search_stops_early_and_continues(
    read: Any, psql: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "WINDOW", 10)
    await psql.execute(FILL, 24)
    await psql.execute("update forge_audit_events set actor = 'eve' where (detail->>'n')::int = 3")

    pages = [await read(actor="eve")]
    while pages[-1]["next_cursor"]:
        pages.append(await read(actor="eve", cursor=pages[-1]["next_cursor"]))

    found = [[event["detail"]["n"] for event in page["items"]] for page in pages]
    assert found == [[], [], [3]]
    assert [page["stopped_early"] for page in pages] == [True, True, False]


async def test_tenant_reads_only_its_own_events(
    http: httpx.AsyncClient, token: MakeToken, read: Any, psql: Any
) -> None:
    await psql.execute(FILL, 24)

    assert {event["tenant_id"] for event in (await read(tenant=2))["items"]} == {2}
    refused = await http.get("/_api/audit?tenant_id=3", headers=token("staff", tenant=2))
    assert code(refused) == (403, "forbidden")


async def test_audit_requires_staff(http: httpx.AsyncClient, token: MakeToken) -> None:
    assert code(await http.get("/_api/audit")) == (401, "unauthenticated")
    assert code(await http.get("/_api/audit", headers=token("user"))) == (403, "forbidden")


@pytest.mark.parametrize(
    "asked", ["cursor=x", "cursor=9999999999999999999", "dlq_id=0", "limit=0", "job_id=x"]
)
async def test_invalid_parameters_are_refused(
    http: httpx.AsyncClient, token: MakeToken, asked: str
) -> None:
    answer = await http.get(f"/_api/audit?{asked}", headers=token("staff"))

    assert paths(answer) == [f"query.{asked.partition('=')[0]}"]
