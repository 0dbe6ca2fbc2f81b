"""Statistics over HTTP, for operators and for tenants."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from forge import Forge
from tests.apps import Work
from tests.http.admins import Admin
from tests.http.conftest import MakeToken
from tests.http.job_client import add_jobs, code
from tests.worker.test_statistics import write

PATH = "/_api/statistics"
NONE = {"p50": None, "p95": None, "p99": None}


@pytest.fixture
async def ran(app: Forge, work: Work) -> None:
    """Two jobs of tenant 7, one of tenant 8, one without a tenant."""
    add_jobs(app)
    worker = await work(app)
    handles = [
        await app.dispatch("send_mail", {}, tenant_id=7),
        await app.dispatch("send_mail", {}, tenant_id=7),
        await app.dispatch("send_mail", {}, tenant_id=8),
        await app.dispatch("export_users", {"format": "csv"}),
    ]
    await asyncio.gather(*(handle.result(20) for handle in handles))
    await write(worker)


async def test_an_operator_reads_a_series(
    ran: None, http: httpx.AsyncClient, token: MakeToken
) -> None:
    answer = await http.get(PATH, headers=token("user"))

    assert answer.status_code == 200, answer.text
    read = answer.json()
    assert list(read) == ["from", "to", "step", "series"]
    begin, end = datetime.fromisoformat(read["from"]), datetime.fromisoformat(read["to"])
    assert (read["step"], end - begin) == ("1m", timedelta(minutes=61))
    assert len(read["series"]) == 61
    first, *_ = read["series"]
    assert first == {
        "at": read["from"],
        "completed": 0,
        "failed": 0,
        "retried": 0,
        "crashed": 0,
        "wait_ms": NONE,
        "run_ms": NONE,
    }
    assert sum(point["completed"] for point in read["series"]) == 4
    measured = next(point for point in read["series"] if point["completed"])
    assert 0 <= measured["run_ms"]["p50"] <= measured["run_ms"]["p99"]
    assert 0 <= measured["wait_ms"]["p50"] <= measured["wait_ms"]["p99"]


async def test_filters_of_an_operator(ran: None, http: httpx.AsyncClient, token: MakeToken) -> None:
    async def completed(**asked: str) -> int:
        answer = await http.get(PATH, params=asked, headers=token("staff"))
        assert answer.status_code == 200, answer.text
        return sum(point["completed"] for point in answer.json()["series"])

    long_ago = {"from": "2026-01-01T00:00:00Z", "to": "2026-01-01T01:00:00Z"}
    assert await completed(type="send_mail") == 3
    assert await completed(queue="mail") == 3
    assert await completed(type="export_users", queue="mail") == 0
    assert await completed(tenant_id="8") == 1
    assert await completed(step="30m") == 4
    assert await completed(**long_ago) == 0


async def test_totals_by_type(ran: None, http: httpx.AsyncClient, token: MakeToken) -> None:
    answer = await http.get(f"{PATH}/by_type", headers=token("user"))

    assert answer.status_code == 200, answer.text
    read = answer.json()
    mail, export = read["items"]
    assert (mail["job_type"], mail["queue"], mail["completed"]) == ("send_mail", "mail", 3)
    assert mail["per_minute"] == pytest.approx(3 / 60, rel=0.05)
    assert (mail["failed_percent"], mail["cancelled"]) == (0.0, 0)
    assert mail["wait_ms"]["p95"] is not None
    assert export["job_type"] == "export_users"


async def test_a_tenant_reads_its_outcomes(
    ran: None, http: httpx.AsyncClient, token: MakeToken
) -> None:
    own = token("user", tenant=7)

    series = (await http.get(PATH, headers=own)).json()
    (total,) = (await http.get(f"{PATH}/by_type", headers=own)).json()["items"]

    assert series["step"] == "5m"
    assert sum(point["completed"] for point in series["series"]) == 2
    assert all(point["wait_ms"] == NONE for point in series["series"])
    assert (total["completed"], total["job_type"], total["queue"]) == (2, None, None)
    for path in (PATH, f"{PATH}/by_type"):
        of_another = await http.get(path, params={"tenant_id": "8"}, headers=own)
        assert code(of_another) == (403, "forbidden")
        by_queue = await http.get(path, params={"queue": "mail"}, headers=own)
        assert code(by_queue) == (422, "invalid")


@pytest.mark.parametrize(
    "asked",
    [
        {"step": "1m", "from": "2026-01-01T00:00:00Z", "to": "2026-01-03T00:00:00Z"},
        {"step": "90s"},
        {"step": "0m"},
        {"from": "2026-01-02T00:00:00Z", "to": "2026-01-01T00:00:00Z"},
        {"from": "2026-01-02T00:00:00"},
        {"from": "0001-01-01T00:00:00Z"},
        {"to": "9999-12-31T23:59:59-23:59"},
        {"type": ""},
    ],
)
async def test_what_cannot_be_read_is_a_422(
    http: httpx.AsyncClient, token: MakeToken, asked: dict[str, str]
) -> None:
    assert code(await http.get(PATH, params=asked, headers=token("user"))) == (422, "invalid")


async def test_at_most_1500_points(http: httpx.AsyncClient, token: MakeToken) -> None:
    end = datetime.now(UTC).replace(second=0, microsecond=0)
    asked: dict[str, Any] = {"to": end.isoformat(), "step": "1m"}

    most = asked | {"from": (end - timedelta(minutes=1500)).isoformat()}
    answer = await http.get(PATH, params=most, headers=token("user"))
    assert len(answer.json()["series"]) == 1500

    more = asked | {"from": (end - timedelta(minutes=1501)).isoformat()}
    refused = await http.get(PATH, params=more, headers=token("user"))
    assert code(refused) == (422, "invalid")
    assert "1,501 points; at most 1,500" in refused.json()["detail"]


async def test_a_manager_of_a_tenant_counts_what_it_reprocesses(
    bury: Any, admin: Admin, app: Forge
) -> None:
    letter = await bury(tenant_id=123)

    answer = await admin.post(f"{letter.dlq_id}/reprocess/", {"notes": "once more"})

    assert answer.status_code < 300, answer.text
    (total,) = (await app.statistics_by_type(tenant_id=123)).items
    assert total.reprocessed == 1


async def test_totals_are_added_up_by_type_or_by_queue(
    app: Forge, http: httpx.AsyncClient, token: MakeToken, work: Work
) -> None:
    add_jobs(app)
    worker = await work(app)
    handles = [await app.dispatch("send_mail", {}, queue=queue) for queue in ("a", "a", "b")]
    handles.append(await app.dispatch("export_users", {"format": "csv"}, queue="b"))
    await asyncio.gather(*(handle.result(20) for handle in handles))
    await write(worker)

    async def totals(group: str) -> list[tuple[str | None, str | None, int, int]]:
        where = {"group": group}
        found = await http.get(f"{PATH}/by_type", params=where, headers=token("user"))
        keys = ("job_type", "queue", "completed", "failed")
        rows = [tuple(item[key] for key in keys) for item in found.json()["items"]]
        return sorted(rows, key=str)

    assert await totals("type") == [("export_users", None, 1, 0), ("send_mail", None, 3, 0)]
    assert await totals("queue") == [(None, "a", 2, 0), (None, "b", 2, 0)]
    assert await totals("all") == [(None, None, 4, 0)]
    assert len(await totals("type_and_queue")) == 3
    by_queue = await app.statistics_by_type("queue", queue="b")
    assert by_queue.items[0].run_ms.p50 is not None
