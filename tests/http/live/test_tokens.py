"""A socket stays open as long as its token, or a renewed one, is valid."""

from typing import Any
from uuid import UUID

from forge.cli.tokens import hash_of
from forge.config.server import AuthConfig
from forge.http.auth.authenticator import Authenticator
from forge.http.auth.rules import AuthRules
from tests.http.conftest import MakeToken
from tests.http.live.conftest import PassTime, change
from tests.http.live_client import client, watch_token


async def test_revoked_token_closes_the_socket(api: Any, address: str, job_id: UUID) -> None:
    token = "a token that will be withdrawn"
    known = {"name": "ann", "sha256": hash_of(token), "roles": ["user"]}
    rules = [AuthRules.of(AuthConfig.model_validate({"tokens": [known]}))]
    api.state.authenticator = Authenticator(lambda: rules[0])
    async with client(address, {"Authorization": f"Bearer {token}"}) as live:
        await live.subscribe(job_id)
        await live.job()
        rules[0] = AuthRules.of(AuthConfig())

        assert await live.closed() == 4401


async def test_expired_token_closes_the_socket(
    address: str, job_id: UUID, token: MakeToken, pass_time: PassTime
) -> None:
    async with client(address, token("user", lifetime=60)) as live:
        await live.subscribe(job_id)
        await live.job()

        pass_time(300)
        assert await live.closed() == 4401


async def test_renewed_token_keeps_the_socket_open(
    address: str, job_id: UUID, token: MakeToken, psql: Any, pass_time: PassTime
) -> None:
    short_lived = token("user", lifetime=60)
    async with client(address, short_lived) as short, client(address) as live:
        await live.say("auth", token=_bare(short_lived))
        await live.subscribe(job_id)
        await live.job()
        await live.say("auth", token=_bare(token("user", lifetime=600)))
        await live.subscribe(job_id)  # answered after the above was heeded
        await live.job()
        pass_time(300)
        assert await short.closed() == 4401

        await change(psql, job_id, 1)
        assert (await live.job())["progress_percent"] == 1


async def test_expired_watch_token_can_be_renewed(
    address: str, job_id: UUID, psql: Any, pass_time: PassTime
) -> None:
    other = await psql.fetchval("insert into forge_jobs (job_type) values ('y') returning id")
    async with client(address) as live:
        await live.subscribe(other, watch_token=watch_token(other))
        await live.subscribe(job_id, watch_token=watch_token(job_id, lifetime=60))
        await live.job()
        await live.job()
        pass_time(300)
        message = await live.next()
        assert (message["code"], message["job_id"]) == ("unauthenticated", str(job_id))

        await live.subscribe(job_id, watch_token=watch_token(job_id))
        assert (await live.job())["id"] == str(job_id)


async def test_expiry_of_the_last_watch_token_closes_the_socket(
    address: str, job_id: UUID, pass_time: PassTime
) -> None:
    async with client(address) as live:
        await live.subscribe(job_id, watch_token=watch_token(job_id, lifetime=60))
        await live.job()

        pass_time(300)
        assert await live.closed() == 4401


def _bare(headers: dict[str, str]) -> str:
    return headers["Authorization"].removeprefix("Bearer ")
