"""Metrics of several processes shown as one."""

import json
import logging
import socket
import struct
import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from prometheus_client.core import Metric

    from forge.telemetry.exposition import Collects

Family = dict[str, Any]
# Counts of a process that has ended stay counted; what stood at a value is over.
LASTING = ("counter", "histogram", "summary")
PATIENCE = 2.0
QUESTION = b"?"
LENGTH = struct.Struct(">I")

log = logging.getLogger("forge")


class Reporter:
    """The side of a child: answers its parent's questions from a thread of its own."""

    def __init__(self, channel: socket.socket, metrics: "Collects") -> None:
        self._channel = channel
        self._metrics = metrics
        self._told = b"[]"
        self._lock = threading.Lock()
        threading.Thread(target=self._answer, name="forge-metrics", daemon=True).start()

    def farewell(self) -> None:
        """Send the last figures unasked, since this process ends."""
        self._channel.settimeout(PATIENCE)
        with suppress(OSError):
            self._report()

    def _answer(self) -> None:
        with suppress(OSError):
            while self._channel.recv(1):
                self._report()

    def _report(self) -> None:
        """Send the figures, or the last ones where a metric of the app's own fails."""
        try:
            self._told = json.dumps([plain(metric) for metric in self._metrics.collect()]).encode()
        except Exception as error:
            log.error("the metrics cannot be shown: %s", error, exc_info=error)
        with self._lock:
            self._channel.sendall(LENGTH.pack(len(self._told)) + self._told)


class Gathered:
    """The side of the parent: the sum of what its children, the living and the dead, counted."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._living: dict[socket.socket, _Child] = {}
        self._departed: list[Family] = []

    def welcome(self, channel: socket.socket) -> None:
        """A child begins, which is asked over this channel."""
        with self._lock:
            self._living[channel] = _Child(channel)

    def depart(self, channel: socket.socket) -> None:
        """A child has ended; what it last said stays."""
        with self._lock:
            child = self._living.pop(channel)
            child.hear(0.1)  # it may have said farewell
            channel.close()
            lasting = [family for family in child.last if family["type"] in LASTING]
            self._departed = [plain(metric) for metric in merge([self._departed, lasting])]

    def collect(self) -> "Iterator[Metric]":
        """Ask the children and add up; of one that does not answer its last word counts."""
        with self._lock:
            for child in self._living.values():
                child.ask()
            deadline = monotonic() + PATIENCE
            for child in self._living.values():
                child.hear(deadline - monotonic())
            families = [self._departed, *(child.last for child in self._living.values())]
        return iter(merge(families))


class _Child:
    """What one child said last, and what of its next word has arrived."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._heard = b""
        self.last: list[Family] = []

    def ask(self) -> None:
        self._channel.settimeout(0)
        with suppress(OSError):
            self._channel.sendall(QUESTION)

    def hear(self, patience: float) -> None:
        """Wait for a word; where there are several, the last counts."""
        self._channel.settimeout(max(patience, 0.01))
        with suppress(OSError):
            while not self._take():
                if not (part := self._channel.recv(2**20)):
                    return
                self._heard += part
        while self._take():
            pass

    def _take(self) -> bool:
        end = LENGTH.size
        if len(self._heard) < end:
            return False
        end += LENGTH.unpack(self._heard[: LENGTH.size])[0]
        if len(self._heard) < end:
            return False
        self.last = json.loads(self._heard[LENGTH.size : end])
        self._heard = self._heard[end:]
        return True


def plain(metric: "Metric") -> Family:
    """Return a metric as values that JSON has."""
    return {
        "name": metric.name,
        "help": metric.documentation,
        "type": metric.type,
        "samples": [[s.name, s.labels, s.value] for s in metric.samples],
    }


def merge(sources: Iterable[Iterable[Family]]) -> "list[Metric]":
    """Add up the samples of several processes that have the same name and labels."""
    from prometheus_client.core import Metric

    families: dict[str, Family] = {}
    sums: dict[str, dict[tuple[Any, ...], float]] = {}
    for source in sources:
        for family in source:
            families.setdefault(family["name"], family)
            total = sums.setdefault(family["name"], {})
            for name, labels, value in family["samples"]:
                key = (name, *labels.items())
                total[key] = total.get(key, 0) + value
    merged = []
    for name, family in families.items():
        metric = Metric(name, family["help"], family["type"])
        for (sample, *labels), value in sums[name].items():
            metric.add_sample(sample, dict(labels), value)
        merged.append(metric)
    return merged
