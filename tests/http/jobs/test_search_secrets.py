"""Text search matches redacted text only, so that secrets cannot be guessed."""

from typing import Any

import httpx
import pytest

from forge import Forge, JobContext
from forge.store import listing
from tests.http.conftest import Headers, MakeToken
from tests.http.job_client import dispatched
from tests.store.placing import Psql

SECRET = "correct horse"


@pytest.fixture(autouse=True)
def _jobs(app: Forge) -> None:
    @app.job
    async def connect(ctx: JobContext, input: dict[str, Any]) -> None: ...

    @app.job(allow_sensitive=["password"])
    async def connect_openly(ctx: JobContext, input: dict[str, Any]) -> None: ...


async def fill(http: httpx.AsyncClient, headers: Headers, psql: "Psql[Any]") -> None:
    """Place jobs that quote the secret everywhere, and others among them."""
    for n in range(8):
        secret = {"password": SECRET} if n % 4 else {}
        await dispatched(http, headers, "connect", args={"host": f"db{n}"} | secret)
    await psql.execute(
        "update forge_jobs set last_error = 'refused: ' || (input ->> 'password'),"
        " progress_message = 'tries ' || (input ->> 'password') where input ? 'password'"
    )


async def search(http: httpx.AsyncClient, headers: Headers, **asked: Any) -> Any:
    answer = await http.get("/_api/jobs", params=asked, headers=headers)
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.parametrize("tenant", [7, None])
@pytest.mark.parametrize("window", [3, 5, 20_000])
@pytest.mark.parametrize("limit", [1, 3, 200])
async def test_right_and_wrong_guesses_get_the_same_response(
    http: httpx.AsyncClient,
    token: MakeToken,
    psql: "Psql[Any]",
    monkeypatch: pytest.MonkeyPatch,
    tenant: int | None,
    window: int,
    limit: int,
) -> None:
    await fill(http, token("user", tenant=7), psql)
    monkeypatch.setattr(listing, "WINDOW", window)
    headers = token("user", "staff", "manager", tenant=tenant)

    wrong = await search(http, headers, q="correct hors?", limit=limit)

    for right in (SECRET, "correct h", "CORRECT", '"password": "c'):
        assert await search(http, headers, q=right, limit=limit) == wrong
    assert wrong["items"] == []


@pytest.mark.parametrize("limit", [1, 2, 3])
async def test_guess_with_own_matching_jobs_reveals_nothing(
    http: httpx.AsyncClient, token: MakeToken, psql: "Psql[Any]", limit: int
) -> None:
    user = token("user", tenant=7)
    right, wrong = "correct h", "correct x"
    for _ in range(2):
        await dispatched(http, user, "connect", args={"note": f"{right} {wrong}"})
        await fill(http, user, psql)

    pages = [await search(http, user, q=guess, limit=limit) for guess in (right, wrong)]

    assert pages[0] == pages[1]
    assert len(pages[0]["items"]) == min(limit, 2)


@pytest.mark.parametrize("text", ["db5", "password", "refused", '"host": "db', "TRIES"])
async def test_redacted_text_is_searchable(
    http: httpx.AsyncClient, token: MakeToken, psql: "Psql[Any]", text: str
) -> None:
    await fill(http, token("user", tenant=7), psql)
    user = token("user", tenant=7)

    pages: list[Any] = []
    while not pages or pages[-1]["next_cursor"]:
        asked = {"q": text, "limit": 2} | ({"cursor": pages[-1]["next_cursor"]} if pages else {})
        pages.append(await search(http, user, **asked))

    # Ids that were made within one millisecond have no order.
    found = sorted(job["input"]["host"] for page in pages for job in page["items"])
    all_of_them = [f"db{n}" for n in range(8)]
    with_a_secret = [host for host in all_of_them if host not in ("db0", "db4")]
    expected = {"db5": ["db5"], '"host": "db': all_of_them}
    assert found == expected.get(text, with_a_secret)


async def test_allowed_sensitive_fields_are_searchable(
    http: httpx.AsyncClient, token: MakeToken
) -> None:
    job_id = await dispatched(http, token("user"), "connect_openly", args={"password": SECRET})

    found = await search(http, token("user"), q=SECRET)

    assert [job["id"] for job in found["items"]] == [str(job_id)]
    assert found["items"][0]["input"] == {"password": SECRET}
