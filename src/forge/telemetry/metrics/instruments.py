"""Counters, gauges and histograms with cheap updates: plain numbers, read when scraped.

prometheus_client's own take a lock and several calls per observation, which slows down a worker
that runs thousands of jobs a second. These are exposed through its registry.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from prometheus_client.core import Metric

Labels = tuple[str, ...]
Amounts = Mapping[Labels, float]
S = TypeVar("S", bound="CounterSeries | HistogramSeries")
OTHER = "other"


class CounterSeries:
    """One series of a counter."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0.0

    def add(self, amount: float = 1) -> None:
        self.value += amount

    def plain(self) -> list[Any]:
        return [self.value]

    def absorb(self, value: float) -> None:
        self.value += value


class HistogramSeries:
    """One series of a histogram."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def plain(self) -> list[Any]:
        return [self.counts, self.total]

    def absorb(self, counts: Sequence[int], total: float) -> None:
        """Add the observations of another process, with the same buckets."""
        for place, count in enumerate(counts):
            self.counts[place] += count
        self.total += total

    def cumulative(self) -> list[tuple[str, float]]:
        """Return the cumulative counts of the buckets, as Prometheus expects them."""
        seen = 0
        buckets = []
        for bound, count in zip((*self.bounds, float("inf")), list(self.counts), strict=True):
            seen += count
            buckets.append(("+Inf" if bound == float("inf") else str(float(bound)), float(seen)))
        return buckets


class Instrument(Generic[S]):
    """A metric and its series, one per combination of labels.

    Keep the result of `labelled` if the same labels recur. Beyond `max_series` combinations, all
    others share one series, so that label values from outside cannot exhaust the memory.
    """

    def __init__(
        self, name: str, help: str, labels: Sequence[str], make: Callable[[], S], max_series: int
    ) -> None:
        self.name = name
        self.help = help
        self.label_names = tuple(labels)
        self._make = make
        self._max_series = max_series
        self._series: dict[Labels, S] = {}

    def labelled(self, *labels: str) -> S:
        """Return the series with these labels, in the order of the metric's own."""
        found = self._series.get(labels)
        return self._add(labels) if found is None else found

    def _add(self, labels: Labels) -> S:
        if len(labels) != len(self.label_names):
            raise ValueError(f"{self.name} has the labels {', '.join(self.label_names)}")
        if len(self._series) >= self._max_series:
            labels = (OTHER,) * len(labels)
        return self._series.setdefault(labels, self._make())

    def drain(self) -> list[list[Any]]:
        """Remove all series and return them as plain values."""
        series, self._series = self._series, {}
        return [[list(labels), *one.plain()] for labels, one in series.items()]

    def series(self) -> list[tuple[Labels, S]]:
        return list(self._series.items())


class Counter(Instrument[CounterSeries]):
    """A metric that is counted."""

    type = "counter"

    def __init__(
        self, name: str, help: str, labels: Sequence[str], *, max_series: int = 1000
    ) -> None:
        super().__init__(name, help, labels, CounterSeries, max_series)

    def collect(self) -> Iterator["Metric"]:
        from prometheus_client.core import CounterMetricFamily

        family = CounterMetricFamily(self.name, self.help, labels=self.label_names)
        for labels, amount in self.series():
            family.add_metric(labels, amount.value)
        yield family


class Histogram(Instrument[HistogramSeries]):
    """A metric whose values are counted in buckets."""

    type = "histogram"

    def __init__(
        self,
        name: str,
        help: str,
        labels: Sequence[str],
        buckets: Sequence[float],
        *,
        max_series: int = 1000,
    ) -> None:
        self.buckets = tuple(map(float, buckets))
        super().__init__(name, help, labels, lambda: HistogramSeries(self.buckets), max_series)

    def collect(self) -> Iterator["Metric"]:
        from prometheus_client.core import HistogramMetricFamily

        family = HistogramMetricFamily(self.name, self.help, labels=self.label_names)
        for labels, series in self.series():
            family.add_metric(labels, series.cumulative(), series.total)
        yield family


class CountOf:
    """A counter derived from a histogram: the number of its observations."""

    type = "counter"

    def __init__(self, name: str, help: str, measured: Histogram) -> None:
        self.name = name
        self.help = help
        self.label_names = measured.label_names
        self._measured = measured

    def collect(self) -> Iterator["Metric"]:
        from prometheus_client.core import CounterMetricFamily

        family = CounterMetricFamily(self.name, self.help, labels=self.label_names)
        for labels, series in self._measured.series():
            family.add_metric(labels, sum(series.counts))
        yield family


class Gauge:
    """A metric with a current value, which is read at each scrape."""

    type = "gauge"

    def __init__(self, name: str, help: str, labels: Sequence[str]) -> None:
        self.name = name
        self.help = help
        self.label_names = tuple(labels)
        self.read: Callable[[], Amounts] = dict

    def collect(self) -> Iterator["Metric"]:
        from prometheus_client.core import GaugeMetricFamily

        family = GaugeMetricFamily(self.name, self.help, labels=self.label_names)
        for labels, value in self.read().items():
            family.add_metric(labels, value)
        yield family
