"""Lists on the socket: a message when a list may differ, at most once a second."""

from collections.abc import Callable
from typing import Any

import pytest

from forge.core.lifecycle import Status
from forge.http.live import lists
from forge.jobs import list_watcher
from forge.store import listing
from forge.store.connection.database import Database
from forge.store.statement import Statement
from tests.faults.kit.process import until
from tests.http.conftest import MakeToken
from tests.http.live_client import Client, Served, client, watch_token
from tests.store.placing import Psql, insert, placed, registered

MAIL = {"type": "mail"}
Probes = Callable[[], int]


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(list_watcher, "INTERVAL", 0.02)


@pytest.fixture
def probes(api: Any) -> Probes:
    """Count the probes of the server."""
    seen: list[Statement[Any]] = []

    def observe(statement: Statement[Any], seconds: float, error: Any) -> None:
        if "fingerprint" in statement.sql:
            seen.append(statement)

    api.state.forge.observers.append(observe)
    return lambda: len(seen)


async def follow(live: Client, list_id: str, **wanted: Any) -> dict[str, Any]:
    await live.say("subscribe", id=list_id, filter=wanted)
    return await live.next()


async def quiet(probes: Probes) -> None:
    """Wait until another probe has ended."""
    before = probes()
    await until(lambda: probes() > before + 2, 20, "the list was probed again")


async def test_a_list_is_reported_at_once_and_after_each_change(
    quick: Client, psql: "Psql[Any]", probes: Probes
) -> None:
    changed = {"type": "changed", "id": "jobs"}

    assert await follow(quick, "jobs", **MAIL) == changed
    job_id = await insert(psql, job_type="mail")
    assert await quick.next() == changed
    await insert(psql, job_type="other")
    await quiet(probes)
    await psql.execute("update forge_jobs set progress_percent = 1 where id = $1", job_id)
    assert await quick.next() == changed
    await psql.execute("delete from forge_jobs where id = $1", job_id)
    assert await quick.next() == changed

    await quick.say("unsubscribe", id="jobs")
    await insert(psql, job_type="mail")
    assert await follow(quick, "others", type="other") == {"type": "changed", "id": "others"}


async def test_another_filter_under_the_same_id_replaces_the_first(
    quick: Client, psql: "Psql[Any]", api: Any
) -> None:
    await follow(quick, "jobs", **MAIL)
    await follow(quick, "jobs", status="pending", queue="default")

    assert api.state.live_hub.lists.lists == 1
    await insert(psql, job_type="other")
    assert (await quick.next())["id"] == "jobs"


async def test_sockets_with_the_same_list_share_its_probes_until_the_last_one_leaves(
    address: str, token: MakeToken, api: Any, probes: Probes
) -> None:
    async with client(address, token("user")) as first:
        await follow(first, "a", **MAIL)
        watcher = api.state.live_hub.lists
        async with client(address, token("staff", name="bob")) as second:
            await follow(second, "b", **MAIL)
            await follow(second, "c", **MAIL)

            assert watcher.lists == 1
        await until(lambda: watcher.lists == 1, 10, "one is left")
        await quiet(probes)
    await until(lambda: watcher.lists == 0, 10, "no list is probed")


async def test_a_tenant_learns_of_its_own_jobs_only(
    address: str, token: MakeToken, psql: "Psql[Any]", probes: Probes
) -> None:
    async with client(address, token("viewer", tenant=7)) as live:
        assert (await follow(live, "mine"))["type"] == "changed"
        await insert(psql, tenant_id=8)
        await insert(psql)
        await quiet(probes)
        refused = await follow(live, "theirs", tenant_id=8)
        await insert(psql, tenant_id=7)
        seen = await live.next()

    assert (refused["code"], refused["id"]) == ("forbidden", "theirs")
    assert seen == {"type": "changed", "id": "mine"}


async def test_a_list_ends_when_the_socket_gets_a_token_of_another_tenant(
    address: str, token: MakeToken, psql: "Psql[Any]"
) -> None:
    async with client(address, token("user", tenant=7)) as live:
        await follow(live, "jobs")
        other = token("user", tenant=8)["Authorization"].split()[1]
        await live.say("auth", token=other)
        await live.say("subscribe", id="own", filter={})
        own = await live.next()
        await insert(psql, tenant_id=7)
        ended = await live.next()

    assert own == {"type": "changed", "id": "own"}
    assert (ended["type"], ended["code"], ended["id"]) == ("error", "forbidden", "jobs")


async def test_a_watch_token_gives_no_access_to_lists(address: str, job_id: Any) -> None:
    async with client(address) as live:
        await live.subscribe(job_id, watch_token=watch_token(job_id))
        await live.job()
        refused = await follow(live, "jobs")

    assert (refused["code"], refused["id"]) == ("unauthenticated", "jobs")


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ({"id": "jobs", "filter": {"q": "secret"}}, "$.filter.q"),
        ({"id": "jobs", "filter": {"status": "done"}}, "$.filter.status"),
        ({"id": "", "filter": {}}, "$.id"),
        ({"filter": {}}, "$.id"),
        ({"id": "jobs"}, "$.filter"),
    ],
)
async def test_what_is_no_list_is_refused_with_the_path(
    quick: Client, sent: dict[str, Any], said: str
) -> None:
    await quick.say("subscribe", **sent)
    refused = await quick.next()

    assert (refused["type"], refused["code"]) == ("error", "invalid")
    assert said in refused["message"]


async def test_lists_are_bounded_per_socket_and_per_server(
    address: str, token: MakeToken, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lists, "MAX_LISTS", 2)
    monkeypatch.setattr(lists, "MAX_DIFFERENT_LISTS", 3)
    async with client(address, token("user")) as first, client(address, token("user")) as second:
        made = [await follow(first, name, type=name) for name in ("a", "b", "c")]
        others = [await follow(second, name, type=name) for name in ("c", "d")]
        again = await follow(second, "shared", type="a")

    assert [message["type"] for message in made] == ["changed", "changed", "error"]
    assert (made[2]["code"], made[2]["id"]) == ("too_many", "c")
    assert [message["type"] for message in others] == ["changed", "error"]
    assert again == {"type": "changed", "id": "shared"}


async def test_running_jobs_behind_many_others_are_watched(
    quick: Client, database: Database, psql: "Psql[Any]", monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = (await registered(database)).id
    job_id = await placed(psql, Status.RUNNING, worker=worker)
    monkeypatch.setattr(listing, "WINDOW", 3)
    for _ in range(5):
        await placed(psql, Status.COMPLETED, worker=worker)
    await follow(quick, "running", status="running")

    await psql.execute("update forge_jobs set progress_percent = 1 where id = $1", job_id)

    assert await quick.next() == {"type": "changed", "id": "running"}


async def test_a_socket_that_follows_only_lists_is_closed_at_shutdown(
    api: Any, token: MakeToken
) -> None:
    served = Served(api)
    async with client(await served.started(), token("user")) as live:
        await follow(live, "jobs")
        await served.stop()

        assert await live.closed() == 1012
