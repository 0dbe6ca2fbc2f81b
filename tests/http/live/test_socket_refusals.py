"""The socket: refused connections and invalid messages."""

import asyncio
import json
from typing import Any
from uuid import uuid4

import pytest
from websockets.exceptions import InvalidStatus

from forge import JobHandle
from forge.http.live import follower_socket
from forge.http.live.messages import MAX_MESSAGE_SIZE, read
from forge.http.problems.problem import Problem
from tests.http.conftest import MakeServerApp, MakeToken, Serve
from tests.http.live.conftest import assert_error
from tests.http.live_client import client


@pytest.mark.parametrize("scheme", ["Bearer nonsense", "Basic YTpi"])
async def test_bad_header_is_refused_before_the_upgrade(address: str, scheme: str) -> None:
    with pytest.raises(InvalidStatus) as refused:
        async with client(address, {"Authorization": scheme}):
            pass

    assert refused.value.response.status_code == 401
    assert json.loads(refused.value.response.body)["code"] == "unauthenticated"


async def test_bad_token_in_an_auth_message_closes_the_socket(address: str) -> None:
    async with client(address) as live:
        await live.say("auth", token="nonsense")

        assert_error(await live.next(), "unauthenticated")
        assert await live.closed() == 4401


async def test_a_token_without_a_role_is_refused(address: str, token: MakeToken) -> None:
    with pytest.raises(InvalidStatus) as refused:
        async with client(address, token("manager")):
            pass

    assert refused.value.response.status_code == 403


async def test_socket_without_authentication_is_closed(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follower_socket, "AUTH_TIMEOUT", 0.2)
    monkeypatch.setattr(follower_socket, "RECHECK_INTERVAL", 0.1)
    async with client(address) as live:
        await live.say("subscribe", job_id=uuid4())
        assert_error(await live.next(), "unauthenticated")

        assert await live.closed() == 4401


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ("no json", "bad_request"),
        (b"{}", "bad_request"),
        ("[]", "invalid"),
        ("{}", "invalid"),
        ('{"type":"dance"}', "invalid"),
        ('{"type":"subscribe"}', "invalid"),
        ('{"type":"subscribe","job_id":"x"}', "invalid"),
        ('{"type":"subscribe","job_id":7}', "invalid"),
        ('{"type":"auth","token":null}', "invalid"),
        ('{"type":"auth","token":"x","more":1}', "invalid"),
        ("[" * 30_000, "bad_request"),
    ],
)
async def test_malformed_message_gets_an_error(
    address: str, handle: JobHandle, token: MakeToken, said: str | bytes, code: str
) -> None:
    async with client(address, token("user")) as live:
        await live.socket.send(said)
        assert_error(await live.next(), code)

        await live.subscribe(handle.id)
        assert (await live.job())["id"] == str(handle.id)


@pytest.mark.parametrize(
    ("sent", "detail"),
    [
        ({"type": "hush"}, "$.type: must be auth, subscribe or unsubscribe"),
        ({"type": "subscribe"}, "$.job_id: Field required"),
        ({"type": "auth", "token": ["hush"]}, "$.token: Input should be a valid string"),
    ],
)
def test_errors_have_a_path_and_no_value(sent: Any, detail: str) -> None:
    with pytest.raises(Problem) as refused:
        read({"type": "websocket.receive", "text": json.dumps(sent)})

    assert refused.value.detail == detail


async def test_a_long_message_counts_as_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follower_socket, "MAX_BURST", 10)
    monkeypatch.setattr(follower_socket, "MESSAGES_PER_SECOND", 1000)
    time = asyncio.get_running_loop().time
    rate, began = follower_socket.MessageRate(), time()

    await rate.wait(100)
    await rate.wait(MAX_MESSAGE_SIZE)

    assert time() - began >= 0.05


async def test_too_large_message_closes_the_socket(address: str, token: MakeToken) -> None:
    async with client(address, token("user")) as live:
        await live.socket.send(json.dumps({"type": "auth", "token": "x" * 70_000}))

        assert await live.closed() == 1009


async def test_number_of_subscriptions_is_limited(
    address: str, handle: JobHandle, token: MakeToken, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follower_socket, "MAX_SUBSCRIPTIONS", 1)
    one_too_many = uuid4()
    async with client(address, token("user")) as live:
        await live.subscribe(handle.id)
        await live.subscribe(one_too_many)
        messages = [await live.next(), await live.next()]

        (error,) = [message for message in messages if message["type"] == "error"]
        assert_error(error, "too_many", one_too_many)
        await live.subscribe(handle.id)
        await live.job()


@pytest.mark.parametrize(
    ("origin", "is_let_in"),
    [
        ("same", True),
        ("https://app.example", True),
        ("https://app.example.evil", False),
        ("https://app.example:8443", False),
        ("http://app.example", False),
        ("http://evil.example", False),
        ("null", False),
        ("", False),
    ],
)
async def test_other_origins_are_refused(
    make_app: Any,
    make_server_app: MakeServerApp,
    serve: Serve,
    token: MakeToken,
    origin: str,
    is_let_in: bool,
) -> None:
    app = make_app(server={"allowed_origins": ["https://app.example"]})
    address = await serve(make_server_app(app))
    headers = token("user") | {"Origin": address if origin == "same" else origin}

    if is_let_in:
        async with client(address, headers) as live:
            await live.say("unsubscribe", job_id=uuid4())
    else:
        with pytest.raises(InvalidStatus) as refused:
            async with client(address, headers):
                pass
        assert refused.value.response.status_code == 403
