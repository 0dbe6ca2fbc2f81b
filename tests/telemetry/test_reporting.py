"""Child processes report their metrics to their parent."""

import select
import socket
import threading
from collections.abc import Iterable

import pytest
from prometheus_client import CollectorRegistry, Counter, Enum, Histogram, Info
from prometheus_client.core import CounterMetricFamily, Metric

from forge.telemetry.metrics import merging
from forge.telemetry.metrics.merging import MergedMetrics, Reporter, merge, plain


class Sometimes:
    """A metric that fails on demand."""

    is_broken = False

    def collect(self) -> Iterable[Metric]:
        if self.is_broken:
            raise RuntimeError("no luck today")
        yield CounterMetricFamily("seen", "What was seen.", value=7)


def test_a_metric_that_fails_leaves_the_figures_before_it_and_the_process_in_peace(
    caplog: pytest.LogCaptureFixture,
) -> None:
    ours, theirs = socket.socketpair()
    metrics, gathered = Sometimes(), MergedMetrics()
    gathered.add_child(ours)
    reporter = Reporter(theirs, metrics)
    before = figures(gathered)

    metrics.is_broken = True
    after = figures(gathered)
    reporter.report_last()
    gathered.remove_child(ours)
    theirs.close()

    assert before == after == figures(gathered) == {"seen_total": 7}
    assert "no luck today" in caplog.text


class Held:
    """A metric that can be held back."""

    def __init__(self) -> None:
        self.value = 0
        self.may_answer = threading.Event()
        self.may_answer.set()

    def collect(self) -> Iterable[Metric]:
        value = self.value
        self.may_answer.wait(30)
        yield CounterMetricFamily("seen", "What was seen.", value=value)


@pytest.mark.parametrize("times", [1, 3])
def test_a_child_that_answered_late_is_not_a_scrape_behind_afterwards(
    monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    ours, theirs = socket.socketpair()
    metrics, gathered = Held(), MergedMetrics()
    gathered.add_child(ours)
    Reporter(theirs, metrics)

    metrics.may_answer.clear()
    with monkeypatch.context() as patch:
        patch.setattr(merging, "ANSWER_TIMEOUT", 0.05)
        late = [figures(gathered) for _ in range(times)]
    metrics.may_answer.set()
    assert select.select([ours], [], [], 30)[0], "the late answer has arrived"
    after = []
    for metrics.value in range(1, 4):
        after.append(figures(gathered))
    gathered.remove_child(ours)
    theirs.close()

    assert late == [{}] * times
    assert after == [{"seen_total": value} for value in range(1, 4)]


def test_counters_of_several_processes_exist_since_the_earliest() -> None:
    first, second = (_registry() for _ in range(2))
    times = [_created(registry) for registry in (first, second)]

    merged = {
        (sample.name, *sample.labels.values()): sample.value
        for metric in merge(
            [[plain(one) for one in source.collect()] for source in (second, first)]
        )
        for sample in metric.samples
    }

    assert times[0] < times[1]
    assert merged["seen_created",] == times[0]
    assert merged["took_created",] < times[1]
    assert (merged["seen_total",], merged["took_count",]) == (2, 2)
    assert merged["build_info", "1.0"] == 1
    assert (merged["mode", "idle"], merged["mode", "busy"]) == (1, 0)


def _registry() -> CollectorRegistry:
    registry = CollectorRegistry()
    Counter("seen", "What was seen.", registry=registry).inc()
    Histogram("took", "How long it took.", registry=registry).observe(1)
    Info("build", "Which build this is.", registry=registry).info({"version": "1.0"})
    Enum("mode", "What it does.", states=["idle", "busy"], registry=registry)
    return registry


def _created(registry: CollectorRegistry) -> float:
    return next(
        sample.value
        for metric in registry.collect()
        for sample in metric.samples
        if sample.name == "seen_created"
    )


def figures(gathered: MergedMetrics) -> dict[str, float]:
    return {sample.name: sample.value for one in gathered.collect() for sample in one.samples}
