"""uvicorn's protocols with timeouts for slow clients and limits on buffers."""

import json
import time
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from forge.http.connections.limits import AUTHENTICATED, MIN_RATE, Guard, Guarded
from forge.http.middleware.cors import cors_headers
from forge.http.problems.problem import MEDIA_TYPE, Problem

# Chunked bodies have a line before each chunk: allowed bytes of such lines per byte of body.
CHUNK_OVERHEAD = 8


class GuardedHttp(Guarded, HttpToolsProtocol):
    """HTTP with timeouts for headers, bodies, idle connections and unread responses."""

    def __init__(self, guard: Guard, **options: Any) -> None:
        super().__init__(**options)
        self._guard = guard
        self._limits = guard.limits
        # The part being read ("head", "body" or, between requests, None), and since when.
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
                "the server has reached its maximum number of connections; try again",
                headers={"Retry-After": "1"},
            )
            self._refuse(problem, "max_connections reached; all connections are in use")

    def waits_since(self) -> float | None:
        is_waiting = self._reading == "body" or not self._is_answering()
        return self._since if is_waiting and not self.transport.is_closing() else None

    def check(self, now: float) -> None:
        if self._is_stalled(now):
            self._guard.dropped(
                "the client did not read the response within send_timeout", self.client
            )
            self.transport.abort()
            return
        # While reading is paused, the server is the slow side.
        if self.transport.is_closing() or self.flow.read_paused:
            return
        waited = now - self._since
        match self._reading:
            case "head" if not self._is_answering() and waited >= self._limits.header_timeout:
                self._time_out("the client did not send its request headers within header_timeout")
            case "body" if waited >= self._body_time():
                self._time_out("the client did not send its request body within body_timeout")
            case None if not self._is_answering() and waited >= self._limits.idle_timeout:
                self.transport.close()

    # Called by the transport

    def data_received(self, data: bytes) -> None:
        if self._is_refused:
            return
        self._other_bytes += len(data)
        super().data_received(data)
        allowed = self._limits.max_header_bytes + CHUNK_OVERHEAD * self._body_bytes
        # After an upgrade the connection belongs to the WebSocket protocol.
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
            self._start_reading("head")

    def on_headers_complete(self) -> None:
        size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
        if size > self._limits.max_header_bytes:
            self._refuse_headers()
            return
        self._start_reading("body")
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._other_bytes -= len(body)
        self._body_bytes += len(body)
        if not self._is_refused:
            super().on_body(body)

    def on_message_complete(self) -> None:
        if not self._is_refused:
            super().on_message_complete()
            self._start_reading(None)

    # Called by the request's cycle

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._since = time.monotonic()

    def _start_reading(self, part: str | None) -> None:
        self._reading = part
        self._since = time.monotonic()

    def _is_answering(self) -> bool:
        return bool(self.pipeline) or (self.cycle is not None and not self.cycle.response_complete)

    def _body_time(self) -> float:
        if not self._is_answering():  # the rest of a body after an early response
            return self._limits.header_timeout
        return self._limits.body_timeout + self._body_bytes / MIN_RATE

    def _is_stalled(self, now: float) -> bool:
        """Whether the client read too little of a response in the last send_timeout."""
        time_limit = self._limits.send_timeout
        if self._unread_since is None or now - self._unread_since < time_limit:
            return False
        left = self.transport.get_write_buffer_size()
        is_stalled = bool(self._unread_bytes - left < MIN_RATE * time_limit)
        self._unread_since, self._unread_bytes = now, left
        return is_stalled

    def _time_out(self, reason: str) -> None:
        self._refuse(Problem("request_timeout", f"{reason}; send the request again"), reason)

    def _refuse_headers(self) -> None:
        limit = self._limits.max_header_bytes
        detail = f"the request headers are larger than {limit} bytes; send fewer headers"
        reason = "the client sent more request headers than max_header_bytes"
        self._refuse(Problem("headers_too_large", detail), reason)

    def _refuse(self, problem: Problem, reason: str) -> None:
        """Send a problem unless a response has started, and close the connection."""
        if self.transport.is_closing():
            return
        self._is_refused = True
        cycle = self.cycle
        if self._can_answer(problem):
            headers = [
                *self.server_state.default_headers,
                *cors_headers(self.headers or [], self._guard.allowed_origins),
            ]
            self.transport.write(_answer(problem, headers))
        if cycle is not None and not cycle.response_complete:
            cycle.disconnected = True
            cycle.message_event.set()
        self.transport.close()
        self._guard.dropped(reason, self.client)

    def _can_answer(self, problem: Problem) -> bool:
        if self._reading == "body":
            return not self.pipeline and not self.cycle.response_started
        can_reply = self._has_begun or problem.code == "unavailable"
        return can_reply and not self._is_answering()


class GuardedWebSocket(Guarded, WebSocketsSansIOProtocol):
    """WebSocket: unauthenticated sockets make room for others, and unread pongs are bounded."""

    def __init__(self, guard: Guard, **options: Any) -> None:
        super().__init__(**options)
        self._since = time.monotonic()
        self._guard = guard

    def waits_since(self) -> float | None:
        is_authenticated = self.handshake_initiated and AUTHENTICATED in self.scope["state"]
        return None if is_authenticated or self.transport.is_closing() else self._since

    def check(self, now: float) -> None:
        """Do nothing: the live routes close unauthenticated sockets, and pings dead ones."""

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        # Every ping is answered at once: stop reading from a client that does not read its pongs.
        if not self.writable.is_set() and not self.transport.is_closing():
            self.transport.pause_reading()

    def resume_writing(self) -> None:
        super().resume_writing()
        if not self.read_paused and not self.transport.is_closing():
            self.transport.resume_reading()


def _answer(problem: Problem, further: list[tuple[bytes, bytes]]) -> bytes:
    body = json.dumps(problem.body()).encode()
    headers = [
        *further,
        (b"content-type", MEDIA_TYPE.encode()),
        (b"content-length", b"%d" % len(body)),
        *((name.lower().encode(), value.encode()) for name, value in problem.headers.items()),
        (b"connection", b"close"),
    ]
    lines = b"".join(b"%s: %s\r\n" % header for header in headers)
    return STATUS_LINE[problem.status] + lines + b"\r\n" + body
