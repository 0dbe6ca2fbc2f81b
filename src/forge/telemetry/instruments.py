"""Counters, gauges and histograms that are cheap to feed: plain numbers, read when scraped.

prometheus_client's own take a lock and several calls for each observation, which a worker that runs
thousands of jobs a second would feel. These are shown through its registry all the same.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from prometheus_client.core import Metric

Labels = tuple[str, ...]
Amounts = Mapping[Labels, float]
S = TypeVar("S", bound="Sum | Spread")
OTHER = "other"


class Sum:
    """One number that grows."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0.0

    def add(self, amount: float = 1) -> None:
        self.value += amount

    def plain(self) -> list[Any]:
        return [self.value]

    def absorb(self, value: float) -> None:
        self.value += value


class Spread:
    """How often something came to how much: one series of a histogram."""

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
        """Add what was observed elsewhere, in the same buckets."""
        for place, count in enumerate(counts):
            self.counts[place] += count
        self.total += total

    def cumulative(self) -> list[tuple[str, float]]:
        """Return the counts as Prometheus has them: each bucket holds those below it, too."""
        seen = 0
        buckets = []
        for bound, count in zip((*self.bounds, float("inf")), list(self.counts), strict=True):
            seen += count
            buckets.append(("+Inf" if bound == float("inf") else str(float(bound)), float(seen)))
        return buckets


class Instrument(Generic[S]):
    """A metric and its series, one for each combination of labels.

    Hold on to what `labelled` returns where the same labels come again and again. Past `most`
    combinations all others are one, since a name from outside must not fill the memory.
    """

    def __init__(
        self, name: str, help: str, labels: Sequence[str], make: Callable[[], S], most: int
    ) -> None:
        self.name = name
        self.help = help
        self.label_names = tuple(labels)
        self._make = make
        self._most = most
        self._series: dict[Labels, S] = {}

    def labelled(self, *labels: str) -> S:
        """Return the series with these labels, in the order of the metric's own."""
        found = self._series.get(labels)
        return self._add(labels) if found is None else found

    def _add(self, labels: Labels) -> S:
        if len(labels) != len(self.label_names):
            raise ValueError(f"{self.name} has the labels {', '.join(self.label_names)}")
        if len(self._series) >= self._most:
            labels = (OTHER,) * len(labels)
        return self._series.setdefault(labels, self._make())

    def drain(self) -> list[list[Any]]:
        """Forget all series and return them as plain values."""
        series, self._series = self._series, {}
        return [[list(labels), *one.plain()] for labels, one in series.items()]

    def series(self) -> list[tuple[Labels, S]]:
        return list(self._series.items())


class Counter(Instrument[Sum]):
    """Something that is counted."""

    type = "counter"

    def __init__(self, name: str, help: str, labels: Sequence[str], *, most: int = 1000) -> None:
        super().__init__(name, help, labels, Sum, most)

    def collect(self) -> Iterator["Metric"]:
        from prometheus_client.core import CounterMetricFamily

        family = CounterMetricFamily(self.name, self.help, labels=self.label_names)
        for labels, amount in self.series():
            family.add_metric(labels, amount.value)
        yield family


class Histogram(Instrument[Spread]):
    """Something that is measured."""

    type = "histogram"

    def __init__(
        self,
        name: str,
        help: str,
        labels: Sequence[str],
        buckets: Sequence[float],
        *,
        most: int = 1000,
    ) -> None:
        self.buckets = tuple(map(float, buckets))
        super().__init__(name, help, labels, lambda: Spread(self.buckets), most)

    def collect(self) -> Iterator["Metric"]:
        from prometheus_client.core import HistogramMetricFamily

        family = HistogramMetricFamily(self.name, self.help, labels=self.label_names)
        for labels, spread in self.series():
            family.add_metric(labels, spread.cumulative(), spread.total)
        yield family


class CountOf:
    """A counter of what a histogram measures: counted once, shown twice."""

    type = "counter"

    def __init__(self, name: str, help: str, measured: Histogram) -> None:
        self.name = name
        self.help = help
        self.label_names = measured.label_names
        self._measured = measured

    def collect(self) -> Iterator["Metric"]:
        from prometheus_client.core import CounterMetricFamily

        family = CounterMetricFamily(self.name, self.help, labels=self.label_names)
        for labels, spread in self._measured.series():
            family.add_metric(labels, sum(spread.counts))
        yield family


class Gauge:
    """Something that stands at a value, which is asked for when somebody looks."""

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
