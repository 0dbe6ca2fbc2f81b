"""A search does the same work for a right and a wrong guess of a redacted secret."""

from collections import Counter
from typing import Any, NamedTuple

import httpx
import pytest

from forge import Forge, JobContext
from forge.jobs import search
from forge.store.connection.database import Database
from forge.store.statement import Statement, name_of
from tests.http.conftest import MakeServerApp, MakeToken
from tests.http.job_client import dispatched
from tests.security.work import counted_calls
from tests.store.placing import Psql
from tests.store.plans.crowd import explaining, planned

SECRET = "correct horse"
WRONG = "correct hors?"
RIGHT = [
    {"q": SECRET},
    {"q": "correct h"},
    {"q": "CORRECT"},
    {"q": '"password": "c'},
]
# By way of searching: a wrong guess, and right ones of the same secret.
GUESSES = {
    "text": ({"q": WRONG}, RIGHT),
    "input": ({"input.password": WRONG}, [{"input.password": SECRET}]),
}


class Work(NamedTuple):
    """What a search cost: statements with their arguments, buffers, rows read and redacted."""

    statements: list[tuple[str, tuple[Any, ...]]]
    buffers: list[int]
    calls: Counter[str]


@pytest.fixture(autouse=True)
def _jobs(app: Forge) -> None:
    @app.job
    async def connect(ctx: JobContext, input: dict[str, Any]) -> None: ...


@pytest.mark.parametrize("way", GUESSES)
@pytest.mark.parametrize("tenant", [7, None])
async def test_a_right_guess_costs_what_a_wrong_one_costs(
    app: Forge,
    make_server_app: MakeServerApp,
    token: MakeToken,
    psql: "Psql[Any]",
    database: Database,
    tenant: int | None,
    way: str,
) -> None:
    wrong_guess, right_guesses = GUESSES[way]
    seen: list[Statement[Any]] = []
    api = make_server_app(app)
    api.state.forge.observers.append(lambda statement, seconds, error: seen.append(statement))
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(api), base_url="http://forge.test"
    ) as http:
        for n in range(40):
            secret = {"password": SECRET} if n % 4 else {}
            await dispatched(
                http, token("user", tenant=7), "connect", args={"host": f"db{n}"} | secret
            )
        await psql.execute(
            "update forge_jobs set last_error = 'refused: ' || (input ->> 'password')"
            " where input ? 'password'"
        )
        explain = await explaining(database)

        async def cost_of(guess: dict[str, str]) -> Work:
            seen.clear()
            with counted_calls("from_row", "shown_job", "redact") as calls:
                answer = await http.get(
                    "/_api/jobs",
                    params={**guess, "limit": 5},
                    headers=token("user", tenant=tenant),
                )
            assert answer.json()["items"] == []
            pages = [one for one in seen if name_of(one).startswith("jobs/page")]
            buffers = [(await planned(explain, page)).buffers for page in pages]
            # The limits of time and rows are not the same twice.
            statements = [(page.sql, page.args[:17]) for page in pages]
            return Work(statements, buffers, calls)

        await cost_of(wrong_guess)
        wrong = await cost_of(wrong_guess)
        costs = [await cost_of(guess) for guess in right_guesses]
        await explain.close()

    assert costs == [wrong] * len(right_guesses)
    assert wrong.calls["shown_job"] == 40  # or nothing was searched
    assert not any(WRONG in str(args) for _, args in wrong.statements)


async def test_a_search_stops_after_a_limit_of_redacted_rows_and_reports_it(
    http: httpx.AsyncClient, token: MakeToken, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = token("user", tenant=7)
    for n in range(12):
        await dispatched(http, user, "connect", args={"host": f"db{n}"})
    monkeypatch.setattr(search, "MAX_ROWS_SEARCHED", 5)

    pages: list[Any] = []
    while not pages or pages[-1]["next_cursor"]:
        asked = {"q": "db0"} | ({"cursor": pages[-1]["next_cursor"]} if pages else {})
        with counted_calls("shown_job") as calls:
            pages.append((await http.get("/_api/jobs", params=asked, headers=user)).json())
        assert calls["shown_job"] <= 5

    assert [page["stopped_early"] for page in pages] == [True, True, False]
    assert [job["input"]["host"] for page in pages for job in page["items"]] == ["db0"]
