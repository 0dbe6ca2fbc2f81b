"""A proxy before SQS that loses, repeats, delays and mixes up messages, and goes down."""

from __future__ import annotations

import hashlib
import http.client
import json
import random
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from moto.server import ThreadedMotoServer


@contextmanager
def moto_server() -> Iterator[str]:
    """Run moto's server on a free port of this machine."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield f"http://{host}:{port}"
    finally:
        server.stop()


@dataclass
class Faults:
    """How likely a message is lost or repeated, and how long it may be kept back."""

    dropped: float = 0.0
    repeated: float = 0.0
    longest_delay: int = 0
    mixed: bool = False
    # Refused by SQS itself, one entry of a batch and not the others.
    refused: float = 0.0
    # Messages are shown again in their time, whatever was asked.
    hides_nothing: bool = False
    is_down: bool = False
    # Requests are kept until this is set, and then end without an answer.
    kept_until: threading.Event | None = None


class Hostile:
    """Passes requests on to SQS as its faults allow, and counts what it did."""

    def __init__(self, upstream: str, seed: int = 0) -> None:
        self.faults = Faults()
        self.counts: Counter[str] = Counter()
        # As asked for, in the order of sending.
        self.delays: list[int] = []
        self.dice = random.Random(seed)
        self.upstream = urlsplit(upstream)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler_of(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        host, port = self._server.server_address[:2]
        return f"http://{host!s}:{port}"

    def __enter__(self) -> Hostile:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, action: str, asked: dict[str, Any], forward: Any) -> dict[str, Any]:
        """Answer one request, with or without SQS."""
        self.counts[action] += 1
        if action == "SendMessageBatch":
            return self._send(asked, forward)
        if action == "ChangeMessageVisibilityBatch" and self.faults.hides_nothing:
            return {"Successful": [{"Id": entry["Id"]} for entry in asked["Entries"]], "Failed": []}
        answer: dict[str, Any] = forward(asked)
        if action == "ReceiveMessage":
            found = answer.get("Messages", [])
            self.counts["received"] += len(found)
            if self.faults.mixed:
                self.dice.shuffle(found)
        return answer

    def _send(self, asked: dict[str, Any], forward: Any) -> dict[str, Any]:
        entries, faults = asked["Entries"], self.faults
        self.counts["sent"] += len(entries)
        self.delays += [entry.get("DelaySeconds", 0) for entry in entries]
        refused = [entry for entry in entries if self._happens(faults.refused, "refused")]
        passed: list[dict[str, Any]] = []
        for entry in (entry for entry in entries if entry not in refused):
            if self._happens(faults.dropped, "dropped"):
                continue
            times = 2 if self._happens(faults.repeated, "repeated") else 1
            passed += [self._delayed(entry) for _ in range(times)]
        if faults.mixed:
            self.dice.shuffle(passed)
        for start in range(0, len(passed), 10):
            batch = passed[start : start + 10]
            forward(asked | {"Entries": [e | {"Id": str(i)} for i, e in enumerate(batch)]})
        return {
            "Successful": [_as_if_sent(entry) for entry in entries if entry not in refused],
            "Failed": [
                {"Id": entry["Id"], "SenderFault": False, "Code": "InternalError"}
                for entry in refused
            ],
        }

    def _delayed(self, entry: dict[str, Any]) -> dict[str, Any]:
        if not self.faults.longest_delay:
            return entry
        later = entry.get("DelaySeconds", 0) + self.dice.randint(0, self.faults.longest_delay)
        return entry | {"DelaySeconds": min(later, 900)}

    def _happens(self, chance: float, what: str) -> bool:
        happens = self.dice.random() < chance
        self.counts[what] += happens
        return happens


def _as_if_sent(entry: dict[str, Any]) -> dict[str, Any]:
    digest = hashlib.md5(entry["MessageBody"].encode()).hexdigest()
    return {"Id": entry["Id"], "MessageId": f"as-if-{entry['Id']}", "MD5OfMessageBody": digest}


def _handler_of(hostile: Hostile) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if hostile.faults.is_down:
                hostile.counts["turned away"] += 1
                self.close_connection = True
                self.connection.close()
                return
            if (until := hostile.faults.kept_until) is not None:
                hostile.counts["kept"] += 1
                until.wait(60)
                self.close_connection = True
                self.connection.close()
                return
            action = self.headers["X-Amz-Target"].partition(".")[2]
            answer = hostile.answer(action, json.loads(body), self._forward)
            self._reply(json.dumps(answer).encode())

        def _forward(self, asked: dict[str, Any]) -> dict[str, Any]:
            connection = http.client.HTTPConnection(
                hostile.upstream.hostname or "", hostile.upstream.port, timeout=60
            )
            kept = {k: v for k, v in self.headers.items() if k.lower() not in _OWN}
            connection.request("POST", "/", json.dumps(asked).encode(), kept)
            answer = connection.getresponse().read()
            connection.close()
            return json.loads(answer or b"{}")

        def _reply(self, body: bytes) -> None:
            try:
                self.send_response(200)
                self.send_header("Content-Type", "application/x-amz-json-1.0")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
            except OSError:
                self.close_connection = True  # the client was killed meanwhile

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    return Handler


_OWN = {"host", "content-length", "connection"}
