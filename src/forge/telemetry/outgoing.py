"""HTTP clients that measure: every call to another service, how long it took, what went wrong."""

import asyncio
from time import perf_counter
from typing import Any

import httpx

from forge.telemetry.metrics import ApiMetrics, WorkerMetrics


class CallMeter:
    """Takes note of calls to other services."""

    def __init__(self, metrics: ApiMetrics | WorkerMetrics) -> None:
        self._durations = metrics.external_duration_seconds
        self._errors = metrics.external_error_total

    def ended(self, request: httpx.Request, began: float, response: httpx.Response | None) -> None:
        """A call was answered; or it was not, and `failed` is told why."""
        self._durations.labelled(*labels_of(request)).observe(perf_counter() - began)
        if response is not None and response.is_error:
            self._errors.labelled(*labels_of(request), str(response.status_code)).add()

    def failed(self, request: httpx.Request, began: float, error: BaseException) -> None:
        self.ended(request, began, None)
        self._errors.labelled(*labels_of(request), type(error).__name__).add()


def labels_of(request: httpx.Request) -> tuple[str, str]:
    """Return what a call is counted under: what it says itself, or its host and method.

    `extensions={"service": "stripe", "operation": "charge"}` of a request says it.
    """
    service = request.extensions.get("service") or request.url.host or "unknown"
    return str(service), str(request.extensions.get("operation") or request.method)


class MeasuredClient(httpx.AsyncClient):
    """An HTTP client whose calls are measured."""

    def __init__(self, meter: CallMeter, **options: Any) -> None:
        super().__init__(**options)
        self._meter = meter

    async def send(self, request: httpx.Request, **options: Any) -> httpx.Response:
        began = perf_counter()
        try:
            response = await super().send(request, **options)
        except (Exception, asyncio.CancelledError) as error:
            self._meter.failed(request, began, error)
            raise
        self._meter.ended(request, began, response)
        return response


class MeasuredBlockingClient(httpx.Client):
    """The same for code in threads."""

    def __init__(self, meter: CallMeter, **options: Any) -> None:
        super().__init__(**options)
        self._meter = meter

    def send(self, request: httpx.Request, **options: Any) -> httpx.Response:
        began = perf_counter()
        try:
            response = super().send(request, **options)
        except Exception as error:
            self._meter.failed(request, began, error)
            raise
        self._meter.ended(request, began, response)
        return response
