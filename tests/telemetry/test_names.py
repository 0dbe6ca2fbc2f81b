"""Every metric has its documented name, type, labels and buckets."""

from typing import Any

import pytest

from forge.telemetry.metrics.instruments import Histogram
from forge.telemetry.metrics.registries import Metrics
from tests.surface.test_reference import names, table

Shape = tuple[str, tuple[str, ...], tuple[float, ...] | None]

API_SECONDS = (0.1, 0.3, 0.5, 1, 2, 5, 10)
JOB_SECONDS = (0.1, 0.3, 0.5, 0.7, 1, 3, 5, 7, 10)
AWS_SECONDS = (0.1, 0.3, 0.5, 1, 3, 5, 7, 10)
MILLISECONDS = (
    *(10, 30, 50, 70, 100, 300, 500, 700, 1000, 1500, 2000, 2500, 3000, 3500),
    *(4000, 4500, 5000, 5500, 6000, 6500, 7000, 7500, 8000, 8500, 9000, 9500),
    10000,
)
BYTES = (1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072, 262144, 524288, 1048576)
EXTERNAL: dict[str, Shape] = {
    "external_duration_seconds": ("histogram", ("service", "operation"), API_SECONDS),
    "external_error_total": ("counter", ("service", "operation", "error_code"), None),
}
API: dict[str, Shape] = EXTERNAL | {
    "http_request_duration_seconds": (
        "histogram",
        ("method", "route", "status_code"),
        API_SECONDS,
    ),
    "http_requests_total": ("counter", ("method", "route", "status_code"), None),
    "upload_size_bytes": ("histogram", ("mime_type",), BYTES),
    "db_query_duration_seconds": ("histogram", ("operation", "table"), API_SECONDS),
    "db_query_error_total": ("counter", ("operation", "table", "error_code"), None),
}
WORKER: dict[str, Shape] = EXTERNAL | {
    "job_processing_duration_seconds": ("histogram", ("job_type", "status"), JOB_SECONDS),
    "job_queue_latency_milliseconds": ("histogram", ("job_type",), MILLISECONDS),
    "job_processed_total": ("counter", ("job_type", "status"), None),
    "image_processing_errors_total": ("counter", ("error_type",), None),
    "s3_operation_duration_seconds": ("histogram", ("operation", "bucket"), AWS_SECONDS),
    "s3_operation_errors_total": ("counter", ("operation", "bucket", "error_code"), None),
    "db_query_duration_seconds": ("histogram", ("query_type",), JOB_SECONDS),
    "db_query_errors_total": ("counter", ("query_type", "error_type"), None),
    "cloudfront_operation_duration_seconds": ("histogram", ("operation",), AWS_SECONDS),
    "cloudfront_operation_errors_total": ("counter", ("operation", "error_code"), None),
    "job_active_count": ("gauge", ("job_type",), None),
    "job_queue_depth": ("gauge", ("job_type",), None),
}


@pytest.mark.parametrize(("registry", "promised"), [("api", API), ("worker", WORKER)])
def test_the_metrics_that_were_promised_are_there_as_they_were(
    registry: str, promised: dict[str, Shape]
) -> None:
    found = {
        instrument.name: shape(instrument)
        for instrument in getattr(Metrics(), registry).instruments()
    }

    assert {name: found[name] for name in promised} == promised
    assert all(name.startswith("forge_") for name in found.keys() - promised.keys())


@pytest.mark.parametrize(("registry", "heading"), [("api", "metric"), ("worker", "worker metric")])
def test_the_reference_page_matches_the_code(registry: str, heading: str) -> None:
    documented = {
        names(row[0])[0]: (row[1], tuple(names(row[2])), numbers(row[3]))
        for row in table("metrics.md", heading)
    }

    assert documented == {
        instrument.name: shape(instrument)
        for instrument in getattr(Metrics(), registry).instruments()
    }


def shape(instrument: Any) -> Shape:
    buckets = instrument.buckets if isinstance(instrument, Histogram) else None
    return instrument.type, instrument.label_names, buckets


def numbers(cell: str) -> tuple[float, ...] | None:
    return None if cell == "none" else tuple(float(part) for part in cell.split(", "))
