"""All metrics: those of the API, which the server exposes, and those of workers."""

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

from forge.telemetry.metrics.instruments import Counter, CountOf, Gauge, Histogram

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.core import Metric

API_SECONDS = (0.1, 0.3, 0.5, 1, 2, 5, 10)
JOB_SECONDS = (0.1, 0.3, 0.5, 0.7, 1, 3, 5, 7, 10)
AWS_SECONDS = (0.1, 0.3, 0.5, 1, 3, 5, 7, 10)
UPLOAD_BYTES = tuple(1024 * 2**power for power in range(11))
WAIT_MILLISECONDS = (10, 30, 50, 70, 100, 300, 500, 700, 1000, *range(1500, 10_001, 500))

AnyInstrument = Counter | CountOf | Histogram | Gauge


class QueueGauges:
    """The state of the queue in the database; reported by the server and by one worker."""

    def __init__(self) -> None:
        self.workers_alive = Gauge(
            "forge_workers_alive", "Live workers, by worker group.", ("crew",)
        )
        self.oldest_due = Gauge(
            "forge_oldest_due_seconds",
            "Seconds since the oldest waiting job became due, by type.",
            ("job_type",),
        )
        self.dead_letters = Gauge(
            "forge_dead_letters", "Dead letters waiting for review, by type.", ("job_type",)
        )
        self.snapshot_seconds = Gauge(
            "forge_oldest_snapshot_seconds",
            "Age of the oldest transaction that keeps dead rows in the tables, by kind.",
            ("kind",),
        )
        self.snapshot_transactions = Gauge(
            "forge_oldest_snapshot_transactions",
            "Number of transactions started since the oldest snapshot was taken, by kind.",
            ("kind",),
        )


class _Registry:
    """A set of instruments, and a registry to which an app can add its own metrics."""

    @cached_property
    def registry(self) -> "CollectorRegistry":
        """The registry that is exposed; an app can register its own metrics with it."""
        from prometheus_client import CollectorRegistry

        registry = CollectorRegistry()
        registry.register(self)
        return registry

    def instruments(self) -> list[AnyInstrument]:
        """Return Forge's own instruments, in the order of the output."""
        known: list[AnyInstrument] = []
        for value in vars(self).values():
            if isinstance(value, AnyInstrument):
                known.append(value)
            elif isinstance(value, QueueGauges):
                known += vars(value).values()
        return known

    def collect(self) -> Iterator["Metric"]:
        for instrument in self.instruments():
            yield from instrument.collect()

    def drain(self) -> list[list[Any]]:
        """Remove and return all series as plain values, for another process."""
        return [
            [instrument.name, *series]
            for instrument in self.instruments()
            if isinstance(instrument, Counter | Histogram)
            for series in instrument.drain()
        ]

    def absorb(self, drained: list[list[Any]]) -> None:
        """Add the series that another process drained."""
        known = {instrument.name: instrument for instrument in self.instruments()}
        for name, labels, *amounts in drained:
            instrument = known[name]
            if isinstance(instrument, Counter | Histogram):
                instrument.labelled(*labels).absorb(*amounts)

    def describe(self) -> Iterator["Metric"]:
        return self.collect()


class ApiMetrics(_Registry):
    """The metrics of the server."""

    def __init__(self) -> None:
        self._add_requests()
        self._add_statements()
        self.external_duration_seconds, self.external_error_total = _external()
        self.queue = QueueGauges()
        self.canary_age = Gauge(
            "forge_canary_age_seconds",
            "Seconds since a canary of this worker group was last consumed.",
            ("crew",),
        )
        self.canary_latency = Gauge(
            "forge_canary_latency_seconds",
            "Seconds from the dispatch of the last canary to its end.",
            ("crew",),
        )

    def _add_requests(self) -> None:
        self.http_request_duration_seconds = Histogram(
            "http_request_duration_seconds",
            "Duration of HTTP requests.",
            ("method", "route", "status_code"),
            API_SECONDS,
        )
        self.http_requests_total = Counter(
            "http_requests_total",
            "Total number of HTTP requests.",
            ("method", "route", "status_code"),
        )
        self.upload_size_bytes = Histogram(
            "upload_size_bytes", "Upload size in bytes.", ("mime_type",), UPLOAD_BYTES
        )

    def _add_statements(self) -> None:
        self.db_query_duration_seconds = Histogram(
            "db_query_duration_seconds",
            "Duration of DB queries.",
            ("operation", "table"),
            API_SECONDS,
        )
        self.db_query_error_total = Counter(
            "db_query_error_total",
            "Total number of DB query errors.",
            ("operation", "table", "error_code"),
        )


class WorkerMetrics(_Registry):
    """The metrics of a worker."""

    def __init__(self) -> None:
        self._add_attempts()
        self._add_images_and_aws()
        self._add_statements()
        by_type = ("job_type",)
        self.job_active_count = Gauge("job_active_count", "Number of active jobs.", by_type)
        self.job_queue_depth = Gauge("job_queue_depth", "Number of jobs in the queue.", by_type)
        self.external_duration_seconds, self.external_error_total = _external()
        self._add_losses()
        self.queue = QueueGauges()

    def _add_attempts(self) -> None:
        self.job_processing_duration_seconds = Histogram(
            "job_processing_duration_seconds",
            "Duration of job processing.",
            ("job_type", "status"),
            JOB_SECONDS,
        )
        self.job_queue_latency_milliseconds = Histogram(
            "job_queue_latency_milliseconds",
            "Duration of job queue latency: from scheduled_at to the start of the attempt.",
            ("job_type",),
            WAIT_MILLISECONDS,
        )
        self.job_processed_total = CountOf(
            "job_processed_total",
            "Total number of jobs processed.",
            self.job_processing_duration_seconds,
        )

    def _add_images_and_aws(self) -> None:
        self.image_processing_errors_total = Counter(
            "image_processing_errors_total",
            "Total number of image processing errors.",
            ("error_type",),
        )
        self.s3_operation_duration_seconds = Histogram(
            "s3_operation_duration_seconds",
            "Duration of S3 operations.",
            ("operation", "bucket"),
            AWS_SECONDS,
        )
        self.s3_operation_errors_total = Counter(
            "s3_operation_errors_total",
            "Total number of S3 operation errors.",
            ("operation", "bucket", "error_code"),
        )
        self.cloudfront_operation_duration_seconds = Histogram(
            "cloudfront_operation_duration_seconds",
            "Duration of CloudFront operations.",
            ("operation",),
            AWS_SECONDS,
        )
        self.cloudfront_operation_errors_total = Counter(
            "cloudfront_operation_errors_total",
            "Total number of CloudFront operation errors.",
            ("operation", "error_code"),
        )

    def _add_statements(self) -> None:
        self.db_query_duration_seconds = Histogram(
            "db_query_duration_seconds", "Duration of DB queries.", ("query_type",), JOB_SECONDS
        )
        self.db_query_errors_total = Counter(
            "db_query_errors_total",
            "Total number of DB query errors.",
            ("query_type", "error_type"),
        )

    def _add_losses(self) -> None:
        self.attempts_refused = Counter(
            "forge_attempts_refused_total",
            "Writes rejected by the database because their attempt no longer owned its job.",
            ("act",),
        )
        self.jobs_rescued = Counter(
            "forge_jobs_rescued_total", "Jobs rescued from workers that died.", ()
        )


class Metrics:
    """The two registries of an app."""

    def __init__(self) -> None:
        self.api = ApiMetrics()
        self.worker = WorkerMetrics()


def _external() -> tuple[Histogram, Counter]:
    return (
        Histogram(
            "external_duration_seconds",
            "Duration of external service calls.",
            ("service", "operation"),
            API_SECONDS,
        ),
        Counter(
            "external_error_total",
            "Total number of external service errors.",
            ("service", "operation", "error_code"),
        ),
    )
