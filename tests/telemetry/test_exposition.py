"""Metrics are served on a separate port."""

import errno
from collections.abc import Iterable
from contextlib import closing

import httpx
import pytest
from prometheus_client import CollectorRegistry, Counter
from prometheus_client.core import Metric

from forge.telemetry.metrics.exposition import MetricsServer


def test_metrics_are_served_on_an_address_of_ipv6() -> None:
    registry = CollectorRegistry()
    Counter("seen", "What was seen.", registry=registry).inc()

    try:
        server = MetricsServer("::1", 0, registry)
    except OSError as error:
        if error.errno in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
            return  # a machine without IPv6 says so, and not that this is no address
        raise
    with closing(server):
        answer = httpx.get(server.address)

    assert server.address == f"http://[::1]:{server.port}/metrics"
    assert "seen_total 1.0" in answer.text


def test_a_failing_metric_is_reported_to_the_scraper_and_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Broken:
        def collect(self) -> Iterable[Metric]:
            raise RuntimeError("no luck today")

    with closing(MetricsServer("127.0.0.1", 0, Broken())) as server:
        answer = httpx.get(server.address)

    assert answer.status_code == 500
    assert "no luck today" in caplog.text
