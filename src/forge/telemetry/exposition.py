"""Metrics over HTTP from a thread of its own: a handler that blocks the loop does not hide them."""

import errno
import logging
import socket
import threading
from collections.abc import Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from prometheus_client.core import Metric

log = logging.getLogger("forge")
# How many ports after a taken one are tried before any free one will do.
NEIGHBOURS = 100


class Collects(Protocol):
    """Something with metrics to show."""

    def collect(self) -> "Iterable[Metric]": ...


def render(metrics: Collects, accept: str | None) -> tuple[bytes, str]:
    """Return the metrics in the form that a scraper asks for, and what that is called."""
    from prometheus_client.exposition import choose_encoder

    encode, content_type = choose_encoder(accept or "")
    return encode(metrics), content_type


class MetricsServer:
    """Serves `/metrics` until it is closed."""

    def __init__(self, host: str, port: int, metrics: Collects) -> None:
        self._server = _bind(host, port, _handler(metrics))
        self.wanted = port
        self.host, self.port = host, int(self._server.server_address[1])
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.1,), name="forge-metrics", daemon=True
        )
        self._thread.start()

    @property
    def address(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}/metrics"

    @property
    def is_elsewhere(self) -> bool:
        """Whether the port that was wanted was taken."""
        return self.wanted not in (0, self.port)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(timeout=5)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    # Two workers on one port would take turns in answering.
    allow_reuse_port = False

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        # Without this it takes IPv4 alone.
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        super().__init__(address, handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A scraper that hung up is nobody's concern."""


def _bind(host: str, port: int, handler: type[BaseHTTPRequestHandler]) -> _Server:
    """Take the port that is wanted, the next free one after it, or any."""
    ports = [port] if port == 0 else [*range(port, min(port + NEIGHBOURS, 65_536)), 0]
    for candidate in ports:
        try:
            return _Server((host, candidate), handler)
        except OSError as error:
            if error.errno != errno.EADDRINUSE or candidate == 0:
                raise
    raise AssertionError("unreachable: port 0 is either free or raises")


def _handler(metrics: Collects) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = 10

        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            if path not in ("/metrics", "/"):
                self.send_error(404, "there is only /metrics here")
                return
            try:
                body, content_type = render(metrics, self.headers.get("accept"))
            except Exception as error:  # of a metric that the app has registered itself
                log.error("the metrics cannot be shown: %s", error, exc_info=error)
                self.send_error(500, "the metrics cannot be shown; the log says why")
                return
            self.send_response(200)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Scrapes are not worth a line."""

    return Handler
