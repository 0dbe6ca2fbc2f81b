"""Metrics of requests, in plain ASGI because it runs at every request."""

from time import perf_counter

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from forge.telemetry.metrics.instruments import CounterSeries, HistogramSeries
from forge.telemetry.metrics.registries import ApiMetrics

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
# The label of unknown paths: a scanner would otherwise create a series per path.
UNKNOWN_ROUTE = "(none)"


class RequestMetrics:
    """Counts and times requests by the template of their route."""

    def __init__(self, app: ASGIApp, metrics: ApiMetrics) -> None:
        self._app = app
        self._metrics = metrics
        self._series: dict[tuple[str, str, int], tuple[HistogramSeries, CounterSeries]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = perf_counter()
        status = 0

        async def send_and_record(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                if _is_stream(message):
                    # A stream ends when the client leaves: measure the time to its start.
                    self._record(scope, status, perf_counter() - began)
                    status = -1
            await send(message)

        try:
            await self._app(scope, receive, send_and_record)
        except BaseException:
            status = status or 500
            raise
        finally:
            if status > 0:
                self._record(scope, status, perf_counter() - began)

    def _record(self, scope: Scope, status: int, seconds: float) -> None:
        key = (scope["method"], getattr(scope.get("route"), "path_format", UNKNOWN_ROUTE), status)
        series = self._series.get(key) or self._new_series(key)
        series[0].observe(seconds)
        series[1].value += 1

    def _new_series(self, key: tuple[str, str, int]) -> tuple[HistogramSeries, CounterSeries]:
        method, route, status = key
        labels = (method if method in METHODS else "OTHER", route, str(status))
        metrics = self._metrics
        series = (
            metrics.http_request_duration_seconds.labelled(*labels),
            metrics.http_requests_total.labelled(*labels),
        )
        if method in METHODS:
            self._series[key] = series
        return series


def _is_stream(message: Message) -> bool:
    return any(
        name.lower() == b"content-type" and value.startswith(b"text/event-stream")
        for name, value in message["headers"]
    )
