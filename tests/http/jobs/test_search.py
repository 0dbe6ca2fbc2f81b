"""Text search in inputs, progress messages and errors."""

from typing import Any
from uuid import UUID

import httpx
import pytest

from forge import Forge
from forge.store import listing
from tests.http.conftest import MakeToken
from tests.http.job_client import add_jobs, dispatched, paths
from tests.store.placing import Psql


@pytest.fixture(autouse=True)
def _jobs(app: Forge) -> None:
    add_jobs(app)


@pytest.fixture
async def job_id(http: httpx.AsyncClient, token: MakeToken, psql: "Psql[Any]") -> UUID:
    """A job with something to be found in each place, between two others."""
    await dispatched(http, token("user", tenant=7))
    made = await dispatched(
        http, token("user", tenant=7), args={"to": "Ann Ångström", "share": "50%_done"}
    )
    await dispatched(http, token("user", tenant=8), args={"to": "Ann Ångström"})
    await psql.execute(
        "update forge_jobs set last_error = 'Boom: C:\\temp', progress_message = 'half way'"
        " where id = $1",
        made,
    )
    return made


@pytest.mark.parametrize(
    ("text", "is_found"),
    [
        ("Ann", True),
        ("ann", True),
        ("ångström", True),
        ("boom", True),
        ("half", True),
        ("to", True),
        ("50%", True),
        ("%_d", True),
        ("\\temp", True),
        ("5_%", False),
        ("half%way", False),
        ("nobody", False),
        ("'; drop table forge_jobs; --", False),
    ],
)
async def test_search_finds_literal_text(
    http: httpx.AsyncClient, token: MakeToken, job_id: UUID, text: str, is_found: bool
) -> None:
    answer = await http.get("/_api/jobs", params={"q": text}, headers=token("user", tenant=7))

    assert [job["id"] for job in answer.json()["items"]] == [str(job_id)] * is_found


async def test_search_stops_early_at_the_row_limit(
    http: httpx.AsyncClient, token: MakeToken, monkeypatch: pytest.MonkeyPatch, job_id: UUID
) -> None:
    monkeypatch.setattr(listing, "WINDOW", 2)

    first = (await http.get("/_api/jobs", params={"q": "half"}, headers=token("user"))).json()
    rest = (
        await http.get(
            "/_api/jobs",
            params={"q": "no such text", "cursor": first["next_cursor"]},
            headers=token("user"),
        )
    ).json()

    assert [job["id"] for job in first["items"]] == [str(job_id)]
    assert first["stopped_early"]
    assert (rest["items"], rest["stopped_early"], rest["next_cursor"]) == ([], False, None)


@pytest.mark.parametrize("tenant", [7, None])
async def test_search_stops_early_at_the_time_limit(
    http: httpx.AsyncClient,
    token: MakeToken,
    monkeypatch: pytest.MonkeyPatch,
    job_id: UUID,
    tenant: int | None,
) -> None:
    monkeypatch.setattr(listing, "MAX_PAGE_SECONDS", 0.0)
    user = token("user", tenant=tenant)

    pages: list[Any] = []
    while not pages or pages[-1]["next_cursor"]:
        asked: dict[str, Any] = {"q": "half way", "limit": 1}
        if pages:
            asked["cursor"] = pages[-1]["next_cursor"]
        pages.append((await http.get("/_api/jobs", params=asked, headers=user)).json())

    assert [job["id"] for page in pages for job in page["items"]] == [str(job_id)]
    assert pages[0]["stopped_early"]
    assert len(pages) <= 4


async def test_search_combines_with_filters(
    http: httpx.AsyncClient, token: MakeToken, job_id: UUID
) -> None:
    async def found(**asked: str) -> int:
        answer = await http.get("/_api/jobs", params={"q": "half"} | asked, headers=token("user"))
        return len(answer.json()["items"])

    assert await found(status="pending", type="send_mail") == 1
    assert await found(status="failed") == 0
    assert await found(type="export_users") == 0


@pytest.mark.parametrize(
    ("path", "value", "is_found"),
    [
        ("order_id", "42", True),
        ("order_id", "4", False),
        ("order_id.x", "42", False),
        ("customer.name", "Ann", True),
        ("customer.name", "ann", False),
        ("customer", "Ann", False),
        ("items.0.sku", "A7", True),
        ("items.1.sku", "A7", False),
        ("items.sku", "B9", True),
        ("items.7.sku", "B9", False),
        ("labels", "new", True),
        ("paid", "true", True),
        ("note", "null", True),
        ("nothing", "null", False),
        ("price", "9.5", True),
    ],
)
async def test_input_is_searched_by_path(
    http: httpx.AsyncClient, token: MakeToken, path: str, value: str, is_found: bool
) -> None:
    user = token("user", tenant=7)
    args = {
        "order_id": 42,
        "customer": {"name": "Ann"},
        "items": [{"sku": "A7"}, {"sku": "B9"}],
        "labels": ["new", "sale"],
        "paid": True,
        "note": None,
        "price": 9.5,
    }
    made = await dispatched(http, user, args=args)
    await dispatched(http, user, args={"order_id": "43"})

    page = await http.get("/_api/jobs", params={f"input.{path}": value}, headers=user)

    assert [job["id"] for job in page.json()["items"]] == [str(made)] * is_found


@pytest.mark.parametrize(
    "asked", ["input.=1", "input." + "a" * 201 + "=1", "input=1", "inputs.a=1"]
)
async def test_an_input_search_without_a_usable_path_is_refused(
    http: httpx.AsyncClient, token: MakeToken, asked: str
) -> None:
    answer = await http.get(f"/_api/jobs?{asked}", headers=token("user"))

    assert paths(answer) == [f"query.{asked.partition('=')[0][:56]}"]
