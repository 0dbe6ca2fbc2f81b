"""Every route refuses unknown query parameters."""

from typing import Any
from uuid import uuid4

import httpx
import pytest
from websockets.exceptions import InvalidStatus

from forge import Forge
from forge.http.auth.permissions import PERMISSIONS
from forge.http.problems.problem import MAX_FAULTS
from tests.http.conftest import MakeServerApp, MakeToken, Serve
from tests.http.job_client import add_jobs, dispatched, paths
from tests.http.live_client import client
from tests.store.placing import Psql

ALL = ("user", "staff", "manager")


@pytest.mark.parametrize("route", [route for route in PERMISSIONS if not route.startswith("WS")])
async def test_every_route_refuses_unknown_parameters(
    http: httpx.AsyncClient, token: MakeToken, route: str
) -> None:
    method, path = route.split()
    address = path.format(
        job_id=uuid4(),
        schedule_id=uuid4(),
        worker_id=uuid4(),
        pause_id=uuid4(),
        dlq_id=1,
        job_type="send_mail",
        name="rename",
        asset="a.js",
    )

    answer = await http.request(method, f"{address}?colour=red", headers=token(*ALL))

    assert paths(answer) == ["query.colour"]
    assert "red" not in answer.text


async def test_misspelt_parameter_gets_a_suggestion(
    http: httpx.AsyncClient, token: MakeToken
) -> None:
    answer = await http.get("/_api/jobs?stauts=failed&limit=5&tpye=a", headers=token("user"))

    assert paths(answer) == ["query.stauts", "query.tpye"]
    assert "did you mean status?" in answer.json()["detail"]
    assert "did you mean type?" in answer.json()["detail"]


async def test_unknown_parameter_lists_the_known_ones(
    http: httpx.AsyncClient, token: MakeToken
) -> None:
    answer = await http.get("/readyz?colour=red", headers=token("user"))
    none = await http.get("/livez?colour=red", headers=token("user"))

    assert answer.json()["errors"][0]["message"] == "unknown parameter; this route takes deep"
    assert none.json()["errors"][0]["message"] == "unknown parameter; leave it out"


async def test_number_of_reported_parameters_is_limited(http: httpx.AsyncClient) -> None:
    query = "&".join(f"name{number}" for number in range(5000))

    answer = await http.get(f"/_api/jobs?{query}")

    assert paths(answer) == [f"query.name{number}" for number in range(MAX_FAULTS)]


async def test_refused_request_changes_nothing(
    app: Forge, http: httpx.AsyncClient, token: MakeToken, psql: "Psql[Any]"
) -> None:
    add_jobs(app)

    answer = await http.post("/_api/jobs/send_mail/dispatch?delay=1h", headers=token("user"))

    assert paths(answer) == ["query.delay"]
    assert await psql.fetchval("select count(*) from forge_jobs") == 0


async def test_parameters_of_dependencies_are_known(
    app: Forge, http: httpx.AsyncClient, token: MakeToken
) -> None:
    add_jobs(app)
    job_id = await dispatched(http, token("user"))

    answer = await http.get(f"/_api/jobs/{job_id}/events?watch_token=nonsense")

    assert answer.status_code == 401


async def test_trailing_slash_is_optional(http: httpx.AsyncClient, token: MakeToken) -> None:
    assert paths(await http.get("/api/jobs/admin/queue?stauts=x", headers=token(*ALL))) == [
        "query.stauts"
    ]


async def test_unknown_path_is_not_found_with_any_query(
    http: httpx.AsyncClient, token: MakeToken
) -> None:
    assert (await http.get("/nowhere?colour=red", headers=token("user"))).status_code == 404
    assert (await http.put("/_api/jobs?colour=red", headers=token("user"))).status_code == 405


async def test_socket_refuses_unknown_parameters(
    app: Forge, make_server_app: MakeServerApp, serve: Serve, token: MakeToken
) -> None:
    address = await serve(make_server_app(app))

    with pytest.raises(InvalidStatus) as refused:
        async with client(address, token("user"), query="token=nonsense"):
            pass

    assert refused.value.response.status_code == 422
