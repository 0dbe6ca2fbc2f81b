"""Slow, idle and greedy clients are disconnected within limits, and logged."""

import contextlib
import os
import re
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from forge.cli.tokens import block_of
from forge.http.auth.permissions import PERMISSIONS
from tests.cli.command import APPS, Project
from tests.faults.kit.process import Child, wait_until
from tests.http.bearers import TOKEN, static
from tests.http.test_server_command import address

SECRET = "a secret of thirty-two characters or more"
MEGABYTE = 1024**2
# How much the kernels on both sides may buffer for a connection that is not read.
BUFFERED = 16 * MEGABYTE
HEAD = b"POST /_api/jobs/greet/dispatch HTTP/1.1\r\nHost: forge\r\n"
BEARER = f"Authorization: Bearer {TOKEN}\r\n".encode()
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"
LIMITS = {
    "HEADER_TIMEOUT": "1s",
    "BODY_TIMEOUT": "1s",
    "IDLE_TIMEOUT": "2s",
    "SEND_TIMEOUT": "1s",
    "MAX_HEADER_BYTES": "16KB",
    "MAX_CONNECTIONS": "20",
}


@pytest.fixture
def project(database_url: str, tmp_path: Path) -> Project:
    (tmp_path / "shop.py").write_text((APPS / "shop.py").read_text())
    project = Project(database_url, tmp_path)
    token = block_of(static(roles=["user", "staff", "manager"]))
    (tmp_path / "forge.toml").write_text(f'[auth]\nsecret = "{SECRET}"\n\n{token}')
    project.env |= {f"FORGE_SERVER_{name}": value for name, value in LIMITS.items()}
    return project


@pytest.fixture
def serving(project: Project) -> Iterator[Child]:
    with project.start("server", "shop:app", "--port", "0") as child:
        yield child


@pytest.fixture
def at(serving: Child) -> tuple[str, int]:
    host, port = address(serving).removeprefix("http://").split(":")
    return host, int(port)


def send(at: tuple[str, int], data: bytes = b"") -> socket.socket:
    """Open a connection and send these bytes on it."""
    client = socket.create_connection(at, timeout=20)
    client.sendall(data)
    return client


def answer(client: socket.socket) -> bytes:
    """Return all that comes until the server closes the connection."""
    received = b""
    with contextlib.suppress(ConnectionResetError):
        while part := client.recv(65536):
            received += part
    return received


def wait_until_closed(client: socket.socket, drip: bytes) -> None:
    """Keep sending a little until the server closes the connection."""

    def is_closed() -> bool:
        try:
            client.sendall(drip)
            client.settimeout(0.1)
            return client.recv(65536) == b""
        except TimeoutError:
            return False
        except OSError:
            return True

    wait_until(is_closed, 20, "the connection is closed")


def pour(client: socket.socket, piece: bytes, most: int) -> int:
    """Send one piece again and again; return how many bytes went before the server would not."""
    sent = 0
    client.settimeout(5)
    with contextlib.suppress(OSError):
        while sent < most:
            client.sendall(piece)
            sent += len(piece)
    return sent


def is_logged(serving: Child, reason: str) -> bool:
    return wait_until(lambda: reason in serving.output(), 20, f"{reason!r} is logged")


def resident(serving: Child) -> int:
    pages = Path(f"/proc/{serving.pid}/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def test_half_sent_headers_are_not_waited_for(at: tuple[str, int], serving: Child) -> None:
    with send(at, HEAD + b"X-Half: ") as client:
        received = answer(client)

    assert received.startswith(b"HTTP/1.1 408 ")
    assert b'"code": "request_timeout"' in received
    assert is_logged(serving, "the client did not send its request headers within header_timeout")


def test_a_connection_without_a_request_is_closed_whatever_drips(at: tuple[str, int]) -> None:
    for start, drip in ((b"", b""), (b"", b"\r\n"), (HEAD, b"x")):
        with send(at, start) as client:
            wait_until_closed(client, drip)


def test_an_idle_connection_is_closed_though_empty_lines_drip(at: tuple[str, int]) -> None:
    with send(at, b"GET /livez HTTP/1.1\r\nHost: forge\r\n\r\n") as client:
        assert client.recv(65536).startswith(b"HTTP/1.1 200 ")

        wait_until_closed(client, b"\r\n")


ENDLESS = {
    "headers": (HEAD, b"X-Many: " + b"a" * 8000 + b"\r\n"),
    "one header": (HEAD + b"X-Long: ", b"a" * 8192),
    "the address": (b"GET /", b"a" * 8192),
    "trailers": (HEAD + BEARER + CHUNKED + b"0\r\n", b"X-T: " + b"a" * 8000 + b"\r\n"),
    "what follows the length of a chunk": (HEAD + BEARER + CHUNKED + b"1;", b"a" * 8192),
}


def test_endless_headers_are_not_kept(at: tuple[str, int], serving: Child) -> None:
    before = resident(serving)

    for what, (start, piece) in ENDLESS.items():
        with send(at, start) as client:
            assert pour(client, piece, 100 * MEGABYTE) < BUFFERED, what

    assert resident(serving) - before < 2 * BUFFERED
    assert is_logged(serving, "the client sent more request headers than max_header_bytes")


def test_headers_that_come_at_once_and_are_too_large_are_refused(
    at: tuple[str, int], serving: Child
) -> None:
    with send(at, upgrade()[:-2] + b"X-Long: " + b"a" * 17_000 + b"\r\n\r\n") as client:
        assert answer(client).startswith(b"HTTP/1.1 431 ")
    with send(at, HEAD + b"X-Long: " + b"a" * 17_000 + b"\r\n\r\n") as client:
        assert answer(client).startswith(b"HTTP/1.1 431 ")
    with send(at, HEAD + b"X-Long: " + b"a" * 15_000 + b"\r\n\r\n") as client:
        assert client.recv(65536).startswith(b"HTTP/1.1 401 ")
    assert is_logged(serving, "the client sent more request headers than max_header_bytes")
    assert "Traceback" not in serving.output()


def test_a_slow_body_is_not_waited_for(at: tuple[str, int], serving: Child) -> None:
    with send(at, HEAD + BEARER + b'Content-Length: 20\r\n\r\n{"args"') as client:
        received = answer(client)

    assert received.startswith(b"HTTP/1.1 408 ")
    assert is_logged(serving, "the client did not send its request body within body_timeout")
    assert "Traceback" not in serving.output()


def test_a_body_that_comes_fast_enough_may_take_longer_than_its_timeout(
    at: tuple[str, int],
) -> None:
    body = b'{"args": {"name": "ann"}}'.ljust(80_000)
    with send(at, HEAD + BEARER + b"Content-Length: %d\r\n\r\n" % len(body)) as client:
        began = time.monotonic()
        for start in range(0, len(body), 40_000):
            client.sendall(body[start : start + 40_000])
            if start == 0:
                # 40,000 bytes allow for two seconds and a half more.
                wait_until(lambda: time.monotonic() > began + 1.7, 5, "the timeout has passed")
        assert client.recv(65536).startswith(b"HTTP/1.1 202 ")


def test_connections_beyond_the_cap_do_not_stop_a_new_client(
    serving: Child, at: tuple[str, int]
) -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(60):
            stack.enter_context(send(at, HEAD))

        assert httpx.get(f"http://{at[0]}:{at[1]}/livez", timeout=20).status_code == 200
        open_now = len(os.listdir(f"/proc/{serving.pid}/fd"))
    assert open_now < 60
    assert is_logged(serving, "max_connections reached; this connection was idle longest")


def test_sockets_that_show_no_token_do_not_stop_a_new_client(at: tuple[str, int]) -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(40):
            stack.enter_context(send(at, upgrade())).recv(65536)

        assert httpx.get(f"http://{at[0]}:{at[1]}/livez", timeout=20).status_code == 200


def test_connections_in_use_are_not_closed_for_a_new_client(
    project: Project, serving: Child, at: tuple[str, int]
) -> None:
    job = project.dispatch("greet", {"name": "ann"}, "--delay", "1h")
    events = f"GET /_api/jobs/{job}/events HTTP/1.1\r\nHost: forge\r\n".encode() + BEARER + b"\r\n"
    with contextlib.ExitStack() as stack:
        streams = [stack.enter_context(send(at, events)) for _ in range(20)]
        for stream in streams:
            assert stream.recv(65536).startswith(b"HTTP/1.1 200 ")

        with send(at) as late:
            assert answer(late).startswith(b"HTTP/1.1 503 ")
        assert is_logged(serving, "max_connections reached; all connections are in use")
        for stream in streams:
            stream.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                assert stream.recv(65536) != b""


BODIES = [
    route
    for route, right in PERMISSIONS.items()
    if route.startswith("POST") and right.required_role
]


def test_an_unauthorized_caller_is_rejected_before_the_body_is_sent(at: tuple[str, int]) -> None:
    for route in BODIES:
        path = re.sub(r"\{\w*id\}", "0" * 31 + "1", route.removeprefix("POST "))
        path = re.sub(r"\{\w+\}", "greet", path.replace("dlq/" + "0" * 31, "dlq/"))
        head = f"POST {path} HTTP/1.1\r\nHost: forge\r\nContent-Type: application/json\r\n"
        with send(at, f"{head}Content-Length: 1000\r\n\r\n".encode()) as client:
            assert client.recv(65536).startswith(b"HTTP/1.1 401 "), route


def test_a_body_that_is_declared_too_large_is_refused_before_it_is_sent(
    at: tuple[str, int],
) -> None:
    with send(at, HEAD + BEARER + b"Content-Length: 99999999999\r\n\r\n") as client:
        assert client.recv(65536).startswith(b"HTTP/1.1 413 ")


def test_a_client_that_was_answered_may_not_take_its_time_with_the_body(
    at: tuple[str, int],
) -> None:
    with send(at, HEAD + b"Content-Length: 1000\r\n\r\n") as client:
        assert client.recv(65536).startswith(b"HTTP/1.1 401 ")

        wait_until_closed(client, b"x")


def test_an_answer_that_is_not_read_is_not_kept(serving: Child, at: tuple[str, int]) -> None:
    body = {"inputs": [{"name": "a" * 200_000}] * 5, "delay": "1h"}
    many = f"http://{at[0]}:{at[1]}/_api/jobs/greet/dispatch_many"
    for _ in range(4):
        known = {"Authorization": f"Bearer {TOKEN}"}
        assert httpx.post(many, json=body, headers=known, timeout=20).status_code == 202
    ask = b"GET /_api/jobs HTTP/1.1\r\nHost: forge\r\n" + BEARER + b"\r\n"

    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    with client:
        client.connect(at)
        # More than the kernels on both sides take in.
        client.sendall(ask * 20)

        assert is_logged(serving, "the client did not read the response within send_timeout")


def test_pongs_that_are_not_read_are_not_kept(at: tuple[str, int], serving: Child) -> None:
    before = resident(serving)
    with send(at, upgrade()) as client:
        assert client.recv(65536).startswith(b"HTTP/1.1 101 ")
        client.sendall(text('{"type": "auth", "token": "TOKEN"}'.replace("TOKEN", TOKEN)))

        sent = pour(client, frame(0x9, b"x" * 125) * 100, 100 * MEGABYTE)

    assert sent < BUFFERED
    assert resident(serving) - before < 2 * BUFFERED


def upgrade() -> bytes:
    return (
        b"GET /_api/ws HTTP/1.1\r\nHost: forge\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )


def text(said: str) -> bytes:
    return frame(0x1, said.encode())


def frame(opcode: int, payload: bytes) -> bytes:
    """Write a frame as a client must: masked, with a mask that changes nothing."""
    size = len(payload)
    length = struct.pack("!B", 0x80 | size) if size < 126 else struct.pack("!BH", 0xFE, size)
    return struct.pack("!B", 0x80 | opcode) + length + bytes(4) + payload
