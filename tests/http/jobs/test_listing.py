"""Lists of jobs: fields and pages."""

from datetime import datetime
from typing import Any
from uuid import uuid4

import httpx
import pytest
from pydantic import TypeAdapter

from forge import Forge
from forge.http.jobs.paging import read_cursor, write_cursor
from forge.http.jobs.shapes import JobOut
from forge.http.problems.problem import Problem
from forge.store import listing
from tests.http.conftest import MakeToken
from tests.http.job_client import add_jobs, dispatched
from tests.store.placing import Psql


@pytest.fixture(autouse=True)
def _jobs(app: Forge) -> None:
    add_jobs(app)


async def test_the_shape_of_a_job_is_the_row_and_its_state(psql: "Psql[Any]") -> None:
    columns = await psql.fetch(
        "select column_name from information_schema.columns where table_name = 'forge_jobs'"
    )

    shown = TypeAdapter(JobOut).json_schema(mode="serialization")["properties"]

    assert set(shown) == {row["column_name"] for row in columns} | {"state", "undecodable"}


async def test_get_job(
    app: Forge, http: httpx.AsyncClient, token: MakeToken, psql: "Psql[Any]"
) -> None:
    job_id = await dispatched(http, token("user"), args={"a": [1, None]}, tags=["x"])
    await psql.execute("update forge_jobs set timeout = '90 minutes' where id = $1", job_id)

    shown = (await http.get(f"/_api/jobs/{job_id}", headers=token("user"))).json()

    job = await app.get(job_id)
    assert (shown["id"], shown["status"], shown["state"]) == (str(job_id), "pending", "queued")
    assert (shown["input"], shown["tags"], shown["timeout"]) == ({"a": [1, None]}, ["x"], "90m")
    assert datetime.fromisoformat(shown["created_at"]) == job.created_at


async def test_pages_are_newest_first(http: httpx.AsyncClient, token: MakeToken) -> None:
    made = [str(await dispatched(http, token("user"), args={"n": n})) for n in range(7)]

    seen, cursor, pages = [], None, 0
    while cursor or not pages:
        asked = {"limit": 3} | ({"cursor": cursor} if cursor else {})
        page = (await http.get("/_api/jobs", params=asked, headers=token("user"))).json()
        seen += [job["id"] for job in page["items"]]
        cursor, pages = page["next_cursor"], pages + 1

    assert seen == sorted(made, reverse=True)
    assert pages == 3


async def test_last_page_has_no_cursor(http: httpx.AsyncClient, token: MakeToken) -> None:
    for _ in range(3):
        await dispatched(http, token("user"))

    page = (await http.get("/_api/jobs", params={"limit": 3}, headers=token("user"))).json()

    assert len(page["items"]) == 3
    assert (page["next_cursor"], page["stopped_early"]) == (None, False)


async def test_new_jobs_do_not_shift_pages(http: httpx.AsyncClient, token: MakeToken) -> None:
    made = [str(await dispatched(http, token("user"))) for _ in range(4)]
    first = (await http.get("/_api/jobs", params={"limit": 2}, headers=token("user"))).json()
    await dispatched(http, token("user"))

    second = (
        await http.get("/_api/jobs", params={"cursor": first["next_cursor"]}, headers=token("user"))
    ).json()

    assert [job["id"] for job in first["items"] + second["items"]] == sorted(made, reverse=True)


async def test_search_stops_early_and_continues(
    http: httpx.AsyncClient, token: MakeToken, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "WINDOW", 10)
    user = token("user", tenant=7)
    wanted = await dispatched(http, user, "export_users", args={"format": "csv"})
    for n in range(24):
        await dispatched(http, user, args={"n": n})

    for headers in (user, token("user")):
        pages, cursor = [], None
        while cursor or not pages:
            asked = {"type": "export_users"} | ({"cursor": cursor} if cursor else {})
            page = (await http.get("/_api/jobs", params=asked, headers=headers)).json()
            pages.append((len(page["items"]), page["stopped_early"]))
            cursor = page["next_cursor"]
        assert pages == [(0, True), (0, True), (1, False)]
        assert page["items"][0]["id"] == str(wanted)


async def test_page_of_large_jobs_stops_early_and_continues(
    http: httpx.AsyncClient, token: MakeToken, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "MAX_PAGE_BYTES", 100_000)
    made = [
        str(await dispatched(http, token("user"), args={"text": "x" * 40_000})) for _ in range(5)
    ]

    first = (await http.get("/_api/jobs", headers=token("user"))).json()
    second = (
        await http.get("/_api/jobs", params={"cursor": first["next_cursor"]}, headers=token("user"))
    ).json()

    assert [len(page["items"]) for page in (first, second)] == [3, 2]
    assert [job["id"] for job in first["items"] + second["items"]] == sorted(made, reverse=True)
    assert not first["stopped_early"]
    assert second["next_cursor"] is None


def test_a_cursor_is_read_as_it_was_written() -> None:
    place = uuid4()

    assert read_cursor(write_cursor(place)) == place
    with pytest.raises(Problem):
        read_cursor(write_cursor(place)[:-1])


async def test_the_attempts_that_failed_are_shown_in_their_order(
    http: httpx.AsyncClient, token: MakeToken, psql: "Psql[Any]"
) -> None:
    job_id = await dispatched(http, token("user", tenant=7))
    for lease in (2, 1):
        await psql.execute(
            "insert into forge_attempts (job_id, lease, attempt, tenant_id, outcome, error)"
            " values ($1, $2::bigint, $2::bigint, 7, 'retry', $3)",
            job_id,
            lease,
            f"error {lease}",
        )

    answer = await http.get(f"/_api/jobs/{job_id}/attempts", headers=token("user", tenant=7))

    assert [each["error"] for each in answer.json()["items"]] == ["error 1", "error 2"]
