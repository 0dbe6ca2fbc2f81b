"""Merges the metrics of several processes: children report, the parent adds them up."""

import json
import logging
import operator
import selectors
import socket
import struct
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from prometheus_client.core import Metric

    from forge.telemetry.metrics.exposition import MetricCollector

Family = dict[str, Any]
# Types whose values persist when their process ends; gauges do not.
LASTING = ("counter", "histogram", "summary")
ANSWER_TIMEOUT = 2.0
# A request is its number. An answer is the number of the request, its length, and the metrics.
REQUEST = struct.Struct(">I")
ANSWER = struct.Struct(">II")
# The number of an answer that was not requested.
UNREQUESTED = 0

log = logging.getLogger("forge")


class Reporter:
    """The child's side: answers requests of its parent from a separate thread."""

    def __init__(self, channel: socket.socket, metrics: "MetricCollector") -> None:
        self._channel = channel
        self._metrics = metrics
        self._report_bytes = b"[]"
        self._lock = threading.Lock()
        threading.Thread(target=self._answer, name="forge-metrics", daemon=True).start()

    def report_last(self) -> None:
        """Send the final metrics without a request, because this process ends."""
        self._channel.settimeout(ANSWER_TIMEOUT)
        with suppress(OSError):
            self._report(UNREQUESTED)

    def _answer(self) -> None:
        """Answer the newest request: the parent no longer waits for older ones."""
        received = b""
        with suppress(OSError):
            while part := self._channel.recv(4096):
                received += part
                whole = len(received) // REQUEST.size * REQUEST.size
                if whole:
                    (number,) = REQUEST.unpack(received[whole - REQUEST.size : whole])
                    received = received[whole:]
                    self._report(number)

    def _report(self, number: int) -> None:
        """Send the metrics, or the previous ones if a metric of the app fails."""
        with self._lock:
            try:
                figures = [plain(metric) for metric in self._metrics.collect()]
                self._report_bytes = json.dumps(figures).encode()
            except Exception as error:
                log.error("collecting metrics failed: %s", error, exc_info=error)
            self._channel.sendall(ANSWER.pack(number, len(self._report_bytes)) + self._report_bytes)


class MergedMetrics:
    """The parent's side: the sum of the metrics of its running and ended children."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._children: dict[socket.socket, _Child] = {}
        self._ended: list[Family] = []

    def add_child(self, channel: socket.socket) -> None:
        """Add a child that answers on this channel."""
        with self._lock:
            self._children[channel] = _Child(channel)

    def remove_child(self, channel: socket.socket) -> None:
        """Remove a child that ended; its counts are kept."""
        with self._lock:
            child = self._children.pop(channel)
            child.read_rest()  # it may have sent its final metrics
            channel.close()
            lasting = [family for family in child.last if family["type"] in LASTING]
            self._ended = [plain(metric) for metric in merge([self._ended, lasting])]

    def collect(self) -> "Iterator[Metric]":
        """Add up the metrics of all children; use the last answer of those that do not answer."""
        with self._lock:
            children = list(self._children.values())
            for child in children:
                child.request()
            _read_all(children, ANSWER_TIMEOUT)
            families = [self._ended, *(child.last for child in children)]
        return iter(merge(families))


class _Child:
    """The last answer of one child, and the received part of the next."""

    def __init__(self, channel: socket.socket) -> None:
        self.channel = channel
        self.channel.setblocking(False)
        self.last: list[Family] = []
        self._received = bytearray()
        self._requested = 0
        self._answered = 0
        self._is_gone = False

    @property
    def is_pending(self) -> bool:
        """Whether the newest request is unanswered."""
        return self._answered != self._requested and not self._is_gone

    def request(self) -> None:
        self._requested += 1
        with suppress(OSError):
            self.channel.sendall(REQUEST.pack(self._requested))

    def read(self) -> bool:
        """Read what has arrived; return False if nothing has."""
        try:
            part = self.channel.recv(2**20)
        except BlockingIOError:
            return False
        except OSError:
            part = b""
        if not part:
            self._is_gone = True
            return False
        self._received += part
        while self._take():
            pass
        return True

    def read_rest(self) -> None:
        """Read all that an ended child has sent."""
        while self.read():
            pass

    def _take(self) -> bool:
        if len(self._received) < ANSWER.size:
            return False
        number, length = ANSWER.unpack_from(self._received)
        end = ANSWER.size + length
        if len(self._received) < end:
            return False
        # A late answer is older than the pending one, but newer than the last.
        self.last = json.loads(self._received[ANSWER.size : end])
        self._answered = number or self._answered
        del self._received[:end]
        return True


def _read_all(children: "Iterable[_Child]", timeout: float) -> None:
    """Read from all children at once, so that a silent one does not delay the others."""
    deadline = monotonic() + timeout
    with selectors.DefaultSelector() as selector:
        for child in children:
            if child.is_pending:
                selector.register(child.channel, selectors.EVENT_READ, child)
        while selector.get_map() and (left := deadline - monotonic()) > 0:
            for key, _ in selector.select(left):
                key.data.read()
                if not key.data.is_pending:
                    selector.unregister(key.fileobj)


def plain(metric: "Metric") -> Family:
    """Return a metric as JSON values."""
    return {
        "name": metric.name,
        "help": metric.documentation,
        "type": metric.type,
        "samples": [[s.name, s.labels, s.value] for s in metric.samples],
    }


def merge(sources: Iterable[Iterable[Family]]) -> "list[Metric]":
    """Combine samples of several processes with the same name and labels."""
    from prometheus_client.core import Metric

    families: dict[str, Family] = {}
    joined: dict[str, dict[tuple[Any, ...], float]] = {}
    for source in sources:
        for family in source:
            families.setdefault(family["name"], family)
            values = joined.setdefault(family["name"], {})
            for name, labels, value in family["samples"]:
                key = (name, *labels.items())
                join = _join_of(family, name)
                values[key] = join(values[key], value) if key in values else value
    merged = []
    for name, family in families.items():
        metric = Metric(name, family["help"], family["type"])
        for (sample, *labels), value in joined[name].items():
            metric.add_sample(sample, dict(labels), value)
        merged.append(metric)
    return merged


def _join_of(family: Family, sample: str) -> Callable[[float, float], float]:
    """Return the function that combines the values of two processes."""
    if family["type"] in LASTING and sample == f"{family['name']}_created":
        return min  # a time: counting began with the first process
    if family["type"] in ("info", "stateset"):
        return max  # 1 if it is so in any process
    return operator.add
