"""uvicorn's protocols with an end to every wait for the client and a bound to what is buffered."""

import json
import time
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from forge.http.connections import INTRODUCED, SLOWEST, Guard, Guarded
from forge.http.problem import MEDIA_TYPE, Problem

# Chunked bodies have a line before each chunk: so many bytes of lines are allowed a byte of body.
CHUNK_LINES = 8


class GuardedHttp(Guarded, HttpToolsProtocol):
    """HTTP: headers, bodies, idle connections and unread answers have their time."""

    def __init__(self, guard: Guard, **given: Any) -> None:
        super().__init__(**given)
        self._guard = guard
        self._limits = guard.limits
        # What is being read ("head", "body" or, between requests, None), and since when.
        self._reading: str | None = "head"
        self._since = time.monotonic()
        self._has_begun = False
        self._body_bytes = 0
        # Bytes of this request that are not its body.
        self._other_bytes = 0
        self._unread_since: float | None = None
        self._unread_bytes = 0
        self._is_refused = False

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        is_full = len(self.connections) > self._limits.max_connections
        if is_full and not self._guard.make_room(self.connections, self):
            problem = Problem(
                "unavailable",
                "the server has as many connections as it may; try again",
                headers={"Retry-After": "1"},
            )
            self._refuse(problem, "max_connections are open, and all of them are in use")

    def waits_since(self) -> float | None:
        is_waiting = self._reading == "body" or not self._is_answering()
        return self._since if is_waiting and not self.transport.is_closing() else None

    def check(self, now: float) -> None:
        if self._does_not_read(now):
            self._guard.dropped("it did not read its answer within send_timeout", self.client)
            self.transport.abort()
            return
        # While reading is paused it is the server that takes its time.
        if self.transport.is_closing() or self.flow.read_paused:
            return
        waited = now - self._since
        match self._reading:
            case "head" if not self._is_answering() and waited >= self._limits.header_timeout:
                self._give_up("it did not send its request headers within header_timeout")
            case "body" if waited >= self._body_time():
                self._give_up("it did not send its request body within body_timeout")
            case None if not self._is_answering() and waited >= self._limits.idle_timeout:
                self.transport.close()

    # Called by the transport

    def data_received(self, data: bytes) -> None:
        if self._is_refused:
            return
        self._other_bytes += len(data)
        super().data_received(data)
        allowed = self._limits.max_header_bytes + CHUNK_LINES * self._body_bytes
        # After an upgrade the connection is the WebSocket's.
        if self._other_bytes > allowed and self in self.connections:
            self._refuse_headers()

    def handle_websocket_upgrade(self) -> None:
        if not self._is_refused:
            super().handle_websocket_upgrade()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unread_since = time.monotonic()
        self._unread_bytes = self.transport.get_write_buffer_size()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._unread_since = None

    # Called by the parser

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._has_begun = True
        self._other_bytes = self._body_bytes = 0
        if self._reading is None:
            self._read("head")

    def on_headers_complete(self) -> None:
        size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
        if size > self._limits.max_header_bytes:
            self._refuse_headers()
            return
        self._read("body")
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._other_bytes -= len(body)
        self._body_bytes += len(body)
        if not self._is_refused:
            super().on_body(body)

    def on_message_complete(self) -> None:
        if not self._is_refused:
            super().on_message_complete()
            self._read(None)

    # Called by the request's cycle

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._since = time.monotonic()

    def _read(self, what: str | None) -> None:
        self._reading = what
        self._since = time.monotonic()

    def _is_answering(self) -> bool:
        return bool(self.pipeline) or (self.cycle is not None and not self.cycle.response_complete)

    def _body_time(self) -> float:
        if not self._is_answering():  # the rest of a body whose request was answered without it
            return self._limits.header_timeout
        return self._limits.body_timeout + self._body_bytes / SLOWEST

    def _does_not_read(self, now: float) -> bool:
        """Whether too little of an answer was read since the last look, a send_timeout ago."""
        time_limit = self._limits.send_timeout
        if self._unread_since is None or now - self._unread_since < time_limit:
            return False
        left = self.transport.get_write_buffer_size()
        is_stalled = bool(self._unread_bytes - left < SLOWEST * time_limit)
        self._unread_since, self._unread_bytes = now, left
        return is_stalled

    def _give_up(self, reason: str) -> None:
        detail = f"{reason.replace('it', 'the client', 1)}; send the request again, faster"
        self._refuse(Problem("request_timeout", detail), reason)

    def _refuse_headers(self) -> None:
        largest = self._limits.max_header_bytes
        detail = f"the request's headers have more than {largest} bytes; send fewer"
        reason = "it sent more request headers than max_header_bytes"
        self._refuse(Problem("headers_too_large", detail), reason)

    def _refuse(self, problem: Problem, reason: str) -> None:
        """Answer with a problem where nothing else is being answered, and close the connection."""
        if self.transport.is_closing():
            return
        self._is_refused = True
        cycle = self.cycle
        if self._may_answer(problem):
            self.transport.write(_answer(problem, self.server_state.default_headers))
        if cycle is not None and not cycle.response_complete:
            cycle.disconnected = True
            cycle.message_event.set()
        self.transport.close()
        self._guard.dropped(reason, self.client)

    def _may_answer(self, problem: Problem) -> bool:
        if self._reading == "body":
            return not self.pipeline and not self.cycle.response_started
        is_asked = self._has_begun or problem.code == "unavailable"
        return is_asked and not self._is_answering()


class GuardedWebSocket(Guarded, WebSocketsSansIOProtocol):
    """WebSocket: sockets without a token give way, and pongs that are not read are not kept."""

    def __init__(self, guard: Guard, **given: Any) -> None:
        super().__init__(**given)
        self._since = time.monotonic()
        self._guard = guard

    def waits_since(self) -> float | None:
        is_known = self.handshake_initiated and INTRODUCED in self.scope["state"]
        return None if is_known or self.transport.is_closing() else self._since

    def check(self, now: float) -> None:
        """Leave it open: the live routes close what shows no token, and pings what is gone."""

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        # Every ping is answered at once: a client that reads no pongs must not send more of them.
        if not self.writable.is_set() and not self.transport.is_closing():
            self.transport.pause_reading()

    def resume_writing(self) -> None:
        super().resume_writing()
        if not self.read_paused and not self.transport.is_closing():
            self.transport.resume_reading()


def _answer(problem: Problem, default_headers: list[tuple[bytes, bytes]]) -> bytes:
    body = json.dumps(problem.body()).encode()
    headers = [
        *default_headers,
        (b"content-type", MEDIA_TYPE.encode()),
        (b"content-length", b"%d" % len(body)),
        *((name.lower().encode(), value.encode()) for name, value in problem.headers.items()),
        (b"connection", b"close"),
    ]
    lines = b"".join(b"%s: %s\r\n" % header for header in headers)
    return STATUS_LINE[problem.status] + lines + b"\r\n" + body
