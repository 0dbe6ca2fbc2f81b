"""What a process tells the one that started it of its metrics."""

import socket
from collections.abc import Iterable

import pytest
from prometheus_client.core import CounterMetricFamily, Metric

from forge.telemetry.merging import Gathered, Reporter


class Sometimes:
    """A metric that fails when it is told to."""

    is_broken = False

    def collect(self) -> Iterable[Metric]:
        if self.is_broken:
            raise RuntimeError("no luck today")
        yield CounterMetricFamily("seen", "What was seen.", value=7)


def test_a_metric_that_fails_leaves_the_figures_before_it_and_the_process_in_peace(
    caplog: pytest.LogCaptureFixture,
) -> None:
    ours, theirs = socket.socketpair()
    metrics, gathered = Sometimes(), Gathered()
    gathered.welcome(ours)
    reporter = Reporter(theirs, metrics)
    before = figures(gathered)

    metrics.is_broken = True
    after = figures(gathered)
    reporter.farewell()
    gathered.depart(ours)
    theirs.close()

    assert before == after == figures(gathered) == {"seen_total": 7}
    assert "no luck today" in caplog.text


def figures(gathered: Gathered) -> dict[str, float]:
    return {sample.name: sample.value for one in gathered.collect() for sample in one.samples}
