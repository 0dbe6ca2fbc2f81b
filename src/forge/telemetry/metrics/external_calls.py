"""Metrics of calls to other services."""

import threading
from time import perf_counter
from typing import TYPE_CHECKING

from forge.core.events import Event, Events, ExternalCall
from forge.telemetry.metrics.registries import ApiMetrics, WorkerMetrics

if TYPE_CHECKING:
    import httpx


class CallMeter:
    """Records calls of HTTP clients to other services."""

    def __init__(self, metrics: ApiMetrics | WorkerMetrics) -> None:
        self._durations = metrics.external_duration_seconds
        self._errors = metrics.external_error_total

    def client(self) -> "httpx.AsyncClient":
        """Return an HTTP client whose calls are recorded.

        Imported here because httpx takes longer to import than the rest of Forge.
        """
        from forge.telemetry.metrics.http_clients import MeasuredClient

        return MeasuredClient(self)

    def blocking_client(self) -> "httpx.Client":
        """Return a sync HTTP client whose calls are recorded."""
        from forge.telemetry.metrics.http_clients import MeasuredBlockingClient

        return MeasuredBlockingClient(self)

    def ended(
        self, request: "httpx.Request", began: float, response: "httpx.Response | None"
    ) -> None:
        """Record a call; `response` is None if it failed."""
        self._durations.labelled(*labels_of(request)).observe(perf_counter() - began)
        if response is not None and response.is_error:
            self._errors.labelled(*labels_of(request), str(response.status_code)).add()

    def failed(self, request: "httpx.Request", began: float, error: BaseException) -> None:
        self.ended(request, began, None)
        self._errors.labelled(*labels_of(request), type(error).__name__).add()


def labels_of(request: "httpx.Request") -> tuple[str, str]:
    """Return the service and operation of a call: from its extensions, or its host and method.

    Set them with `extensions={"service": "stripe", "operation": "charge"}` on a request.
    """
    service = request.extensions.get("service") or request.url.host or "unknown"
    return str(service), str(request.extensions.get("operation") or request.method)


def measure_services(events: Events, metrics: ApiMetrics | WorkerMetrics) -> None:
    """Count and time the calls of handlers to other services from now on."""
    lock = threading.Lock()

    def listen(event: Event) -> None:
        if isinstance(event, ExternalCall):
            with lock:  # handlers call from several threads
                _record(metrics, event)

    events.other_listeners.append(listen)


def _record(metrics: ApiMetrics | WorkerMetrics, call: ExternalCall) -> None:
    target = call.target or "none"
    if isinstance(metrics, WorkerMetrics) and call.service == "s3":
        durations, errors = metrics.s3_operation_duration_seconds, metrics.s3_operation_errors_total
        labels: tuple[str, ...] = (call.operation, target)
    elif isinstance(metrics, WorkerMetrics) and call.service == "cloudfront":
        durations = metrics.cloudfront_operation_duration_seconds
        errors = metrics.cloudfront_operation_errors_total
        labels = (call.operation,)
    else:
        durations, errors = metrics.external_duration_seconds, metrics.external_error_total
        labels = (call.service, call.operation)
    durations.labelled(*labels).observe(call.seconds)
    if call.error_code is not None:
        errors.labelled(*labels, call.error_code).add()
