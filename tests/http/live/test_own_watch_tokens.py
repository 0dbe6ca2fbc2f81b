"""Watch tokens that an application makes in its own process, and the servers that accept them."""

from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest

from forge import ConfigError, Forge, InvalidValue, JobContext, JobHandle
from forge.config.server import AuthConfig
from forge.core.watch_token import LIFETIME
from forge.http.auth.rules import AuthRules
from forge.http.auth.watch_tokens import WatchTokens
from tests.apps import MakeApp
from tests.http.conftest import AUTH, SECRET
from tests.http.job_client import code
from tests.http.live.conftest import PassTime, assert_error
from tests.http.live_client import client, events

WAYS: dict[str, Callable[[Forge, UUID], str]] = {
    "app.watch_token": lambda app, job_id: app.watch_token(job_id),
    "app.watch_token of text": lambda app, job_id: app.watch_token(str(job_id)),
    "handle.watch_token": lambda app, job_id: app.handle(job_id).watch_token(),
    "app.sync.watch_token": lambda app, job_id: app.sync.watch_token(job_id),
    "sync handle.watch_token": lambda app, job_id: app.sync.handle(job_id).watch_token(),
}


@pytest.fixture
def host(make_app: MakeApp) -> Forge:
    """An application with the secret of the server, and nothing else of its settings."""
    return make_app(auth={"secret": SECRET})


@pytest.mark.parametrize("way", WAYS)
async def test_a_server_with_the_same_secret_accepts_it_everywhere(
    host: Forge, address: str, handle: JobHandle, way: str
) -> None:
    token = WAYS[way](host, handle.id)

    async with client(address) as live:
        await live.subscribe(handle.id, watch_token=token)
        from_socket = await live.job()
    async with events(address, handle.id, watch_token=token) as stream:
        from_stream = await stream.job()
    assert await polled(address, handle.id, token) == (200, str(handle.id))
    assert from_socket["id"] == from_stream["id"] == str(handle.id)


async def test_it_opens_no_connection(host: Forge) -> None:
    host.sync.handle(uuid4()).watch_token()
    host.handle(uuid4()).watch_token()

    assert host.sync._loop._opened is None
    assert not host._sessions.is_open


async def test_it_is_for_one_job(app: Forge, host: Forge, address: str, handle: JobHandle) -> None:
    other = await app.dispatch("export", {}, tenant_id=7)
    token = host.watch_token(handle.id)

    assert await polled(address, other.id, token) == (401, "unauthenticated")
    async with client(address) as live:
        await live.subscribe(other.id, watch_token=token)
        assert_error(await live.next(), "unauthenticated", other.id)


async def test_it_gives_no_access_but_to_live_updates(
    host: Forge, address: str, handle: JobHandle
) -> None:
    token = host.watch_token(handle.id)
    bearer = {"Authorization": f"Bearer {token}"}

    async with httpx.AsyncClient(base_url=address) as http:
        for method, path in (
            ("GET", f"/_api/jobs/{handle.id}"),
            ("POST", f"/_api/jobs/{handle.id}/cancel"),
            ("POST", f"/_api/jobs/{handle.id}/watch_token"),
        ):
            answer = await http.request(method, path, headers=bearer)
            assert code(answer) == (401, "unauthenticated"), path


async def test_it_expires_after_an_hour(
    host: Forge, address: str, handle: JobHandle, pass_time: PassTime
) -> None:
    token = host.watch_token(handle.id)

    pass_time(LIFETIME - 60)
    assert (await polled(address, handle.id, token))[0] == 200
    pass_time(LIFETIME + 1)
    assert await polled(address, handle.id, token) == (401, "unauthenticated")


async def test_a_new_secret_ends_it_while_the_server_runs(
    host: Forge, api: Any, address: str, handle: JobHandle
) -> None:
    rules = [AuthRules.of(AUTH)]
    api.state.watch_tokens = WatchTokens(
        lambda: str(rules[0].auth.secret).encode(), lambda: rules[0].keys()
    )
    token = host.watch_token(handle.id)
    async with client(address) as live:
        await live.subscribe(handle.id, watch_token=token)
        await live.job()

        rules[0] = AuthRules.of(AuthConfig(secret=SECRET[::-1]))
        assert_error(await live.next(), "unauthenticated", handle.id)

    assert await polled(address, handle.id, token) == (401, "unauthenticated")


async def test_a_server_with_its_own_authenticator_accepts_it(host: Forge) -> None:
    job_id = uuid4()
    unbound = WatchTokens(SECRET.encode, None)

    assert unbound.is_good(host.watch_token(job_id), job_id)


async def test_an_app_with_another_secret_makes_none_that_is_accepted(
    make_app: MakeApp, address: str, handle: JobHandle
) -> None:
    token = make_app(auth={"secret": SECRET[::-1]}).watch_token(handle.id)

    assert await polled(address, handle.id, token) == (401, "unauthenticated")


@pytest.mark.parametrize("way", WAYS)
async def test_an_app_without_a_secret_says_what_to_set(app: Forge, way: str) -> None:
    with pytest.raises(ConfigError, match=r"\[auth\] secret.*not set.*FORGE_AUTH_SECRET"):
        WAYS[way](app, uuid4())


def test_a_malformed_id_is_rejected(host: Forge) -> None:
    with pytest.raises(InvalidValue, match="17"):
        host.watch_token("17")


async def test_a_dispatched_job_has_one(host: Forge, address: str) -> None:
    @host.job
    async def report(ctx: JobContext) -> None: ...

    handle = await report.dispatch()

    assert await polled(address, handle.id, handle.watch_token()) == (200, str(handle.id))


async def polled(address: str, job_id: UUID, token: str) -> tuple[int, str]:
    """Return the status, and the id of the job or the code of the problem."""
    async with httpx.AsyncClient(base_url=address) as http:
        answer = await http.get(f"/_api/jobs/{job_id}/live", params={"watch_token": token})
    shown = answer.json()
    return answer.status_code, shown.get("id") or shown["code"]
