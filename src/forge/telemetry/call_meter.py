"""Taking note of calls to other services."""

from time import perf_counter
from typing import TYPE_CHECKING

from forge.telemetry.metrics import ApiMetrics, WorkerMetrics

if TYPE_CHECKING:
    import httpx


class CallMeter:
    """Takes note of calls to other services."""

    def __init__(self, metrics: ApiMetrics | WorkerMetrics) -> None:
        self._durations = metrics.external_duration_seconds
        self._errors = metrics.external_error_total

    def client(self) -> "httpx.AsyncClient":
        """Return an HTTP client whose calls are noted.

        httpx takes longer to import than the rest of Forge, and most processes call nobody.
        """
        from forge.telemetry.outgoing import MeasuredClient

        return MeasuredClient(self)

    def blocking_client(self) -> "httpx.Client":
        """Return the same for code in threads."""
        from forge.telemetry.outgoing import MeasuredBlockingClient

        return MeasuredBlockingClient(self)

    def ended(
        self, request: "httpx.Request", began: float, response: "httpx.Response | None"
    ) -> None:
        """A call was answered; or it was not, and `failed` is told why."""
        self._durations.labelled(*labels_of(request)).observe(perf_counter() - began)
        if response is not None and response.is_error:
            self._errors.labelled(*labels_of(request), str(response.status_code)).add()

    def failed(self, request: "httpx.Request", began: float, error: BaseException) -> None:
        self.ended(request, began, None)
        self._errors.labelled(*labels_of(request), type(error).__name__).add()


def labels_of(request: "httpx.Request") -> tuple[str, str]:
    """Return what a call is counted under: what it says itself, or its host and method.

    `extensions={"service": "stripe", "operation": "charge"}` of a request says it.
    """
    service = request.extensions.get("service") or request.url.host or "unknown"
    return str(service), str(request.extensions.get("operation") or request.method)
