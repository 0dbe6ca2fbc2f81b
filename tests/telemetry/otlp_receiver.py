"""A receiver of OTLP over HTTP, which decodes what it gets with OpenTelemetry's own messages."""

import gzip
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, Self

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span


class Received(NamedTuple):
    """A span as it was sent, with the service and the library that sent it."""

    service: str
    scope: str
    span: Span

    @property
    def name(self) -> str:
        return str(self.span.name)

    @property
    def attributes(self) -> dict[str, Any]:
        return values(self.span.attributes)


class Receiver:
    """Listens on a free port of this machine while it is entered."""

    def __init__(self) -> None:
        self.spans: list[Received] = []
        receive = self._receive

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                is_known = self.path == "/v1/traces"
                assert self.headers["Content-Type"] == "application/x-protobuf"
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                answer = receive(body) if is_known else b""
                self.send_response(200 if is_known else 404)
                self.send_header("Content-Type", "application/x-protobuf")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: object) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def named(self, name: str) -> list[Received]:
        return [each for each in self.spans if each.name == name]

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _receive(self, body: bytes) -> bytes:
        request = ExportTraceServiceRequest.FromString(body)
        self.spans += [
            Received(values(resource.resource.attributes)["service.name"], scope.scope.name, span)
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]
        return bytes(ExportTraceServiceResponse().SerializeToString())


def values(attributes: "list[KeyValue]") -> dict[str, Any]:
    return {each.key: _value(each.value) for each in attributes}


def _value(value: AnyValue) -> Any:
    return getattr(value, str(value.WhichOneof("value")))
