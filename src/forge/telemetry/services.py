"""Metrics of calls to other services that are told as events: S3, CloudFront, and any other."""

import threading

from forge.core.event import Event, Events, ExternalCall
from forge.telemetry.metrics import ApiMetrics, WorkerMetrics


def measure_services(events: Events, metrics: ApiMetrics | WorkerMetrics) -> None:
    """Count and measure the calls of handlers to other services from now on."""
    lock = threading.Lock()

    def listen(event: Event) -> None:
        if isinstance(event, ExternalCall):
            with lock:  # handlers call from threads of their own
                _note(metrics, event)

    events.other_listeners.append(listen)


def _note(metrics: ApiMetrics | WorkerMetrics, call: ExternalCall) -> None:
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
