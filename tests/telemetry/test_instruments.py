"""Instruments: labels, buckets, the database's clock, the names of worker groups."""

import pytest

from forge.core.workers.clock import DatabaseClock
from forge.core.workers.lanes import worker_group_name
from forge.telemetry.metrics.instruments import OTHER, Counter, Histogram
from forge.telemetry.metrics.registries import Metrics
from tests.telemetry.exposed import shown


def test_labels_from_outside_cannot_fill_the_memory() -> None:
    counter = Counter("calls_total", "Calls.", ("service",), max_series=10)

    for n in range(1000):
        counter.labelled(f"host{n}").add()

    series = dict(counter.series())
    assert len(series) == 11
    assert series[OTHER,].value == 990


def test_a_value_on_the_bound_of_a_bucket_counts_in_it() -> None:
    histogram = Histogram("seconds", "Seconds.", (), (0.1, 0.5))

    for value in (0.1, 0.10001, 0.5, 7):
        histogram.labelled().observe(value)

    buckets = dict(histogram.labelled().cumulative())
    assert buckets == {"0.1": 1, "0.5": 3, "+Inf": 4}


def test_what_another_process_measured_is_added() -> None:
    here, there = Metrics().worker, Metrics().worker
    for metrics in (here, there):
        metrics.s3_operation_duration_seconds.labelled("get", "photos").observe(0.2)
        metrics.s3_operation_errors_total.labelled("get", "photos", "404").add()

    here.absorb(there.drain())

    samples = shown(here.registry)
    assert samples["s3_operation_duration_seconds_count", "photos", "get"] == 2
    assert samples["s3_operation_errors_total", "photos", "404", "get"] == 2
    assert there.drain() == []


def test_the_quickest_reading_of_the_databases_clock_counts() -> None:
    clock = DatabaseClock(0.0)

    clock.read(10.0, 10.2, 1000.1)
    clock.read(20.0, 24.0, 1010.5)
    clock.read(30.0, 30.1, 1020.05)

    assert clock.ahead == pytest.approx(990.0)
    assert clock.error == pytest.approx(0.05)


def test_a_reading_of_the_databases_clock_gets_old() -> None:
    clock = DatabaseClock(0.0)

    clock.read(10.0, 10.01, 1000.0)
    clock.read(100.0, 101.0, 2000.0)

    assert clock.ahead == pytest.approx(1899.5)


def test_worker_groups_are_named_by_capabilities_and_queues() -> None:
    assert worker_group_name(["b", "a", "a"], None) == "a,b"
    assert worker_group_name([], ["mail", "fax"]) == "any@fax,mail"
    assert len(worker_group_name([f"capability{n}" for n in range(100)], None)) == 255
    long = [f"capability{n}" for n in range(100)]
    assert worker_group_name(long, None) != worker_group_name([*long, "one more"], None)
