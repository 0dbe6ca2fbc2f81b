"""Metrics on a port of their own."""

import errno
from contextlib import closing

import httpx
from prometheus_client import CollectorRegistry, Counter

from forge.telemetry.exposition import MetricsServer


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
