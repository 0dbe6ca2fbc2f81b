"""Serves metrics over HTTP from a separate thread, so that a blocked event loop does not matter."""

import errno
import logging
import socket
import threading
from collections.abc import Callable, Iterable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from prometheus_client.core import Metric

log = logging.getLogger("forge")
# How many ports after an occupied one are tried before any free port.
NEIGHBOURS = 100


# A health check: what is wrong, or None.
Check = Callable[[], str | None]


class MetricCollector(Protocol):
    """Anything with metrics to collect."""

    def collect(self) -> "Iterable[Metric]": ...


def render(metrics: MetricCollector, accept: str | None) -> tuple[bytes, str]:
    """Return the metrics in the format that the scraper accepts, and its content type."""
    from prometheus_client.exposition import choose_encoder

    encode, content_type = choose_encoder(accept or "")
    return encode(metrics), content_type


class MetricsServer:
    """Serves `/metrics`, and health checks by their paths, until it is closed."""

    def __init__(
        self,
        host: str,
        port: int,
        metrics: MetricCollector,
        checks: Mapping[str, Check] | None = None,
    ) -> None:
        self._server = _bind(host, port, _handler(metrics, checks or {}))
        self.configured_port = port
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
        """Whether the configured port was occupied."""
        return self.configured_port not in (0, self.port)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(timeout=5)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    # Two workers on one port would answer in turns.
    allow_reuse_port = False

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        # Without this it listens on IPv4 only.
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        super().__init__(address, handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore scrapers that disconnect."""


def _bind(host: str, port: int, handler: type[BaseHTTPRequestHandler]) -> _Server:
    """Bind the configured port, the next free one after it, or any."""
    ports = [port] if port == 0 else [*range(port, min(port + NEIGHBOURS, 65_536)), 0]
    for candidate in ports:
        try:
            return _Server((host, candidate), handler)
        except OSError as error:
            if error.errno != errno.EADDRINUSE or candidate == 0:
                raise
    raise AssertionError("unreachable: port 0 is either free or raises")


def _handler(metrics: MetricCollector, checks: Mapping[str, Check]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = 10

        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            if path in checks:
                fault = checks[path]()
                self._respond(503 if fault else 200, f"{fault or 'ok'}\n".encode(), "text/plain")
                return
            if path not in ("/metrics", "/"):
                known = ", ".join(["/metrics", *checks])
                self.send_error(404, f"Not found: this port has {known}")
                return
            try:
                body, content_type = render(metrics, self.headers.get("accept"))
            except Exception as error:  # raised by a metric of the app
                log.error("collecting metrics failed: %s", error, exc_info=error)
                self.send_error(500, "Collecting metrics failed; see the log")
                return
            self._respond(200, body, content_type)

        def _respond(self, status: int, body: bytes, content_type: str) -> None:
            self.send_response(status)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Do not log scrapes."""

    return Handler
