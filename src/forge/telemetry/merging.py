"""Metrics of several processes shown as one."""

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

    from forge.telemetry.exposition import Collects

Family = dict[str, Any]
# Counts of a process that has ended stay counted; what stood at a value is over.
LASTING = ("counter", "histogram", "summary")
PATIENCE = 2.0
# A question is its number. An answer is the number of the question, its length, and the figures.
QUESTION = struct.Struct(">I")
ANSWER = struct.Struct(">II")
# The number of an answer that was not asked for.
UNASKED = 0

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
            self._report(UNASKED)

    def _answer(self) -> None:
        """Answer the newest question: those before it are no longer waited for."""
        heard = b""
        with suppress(OSError):
            while part := self._channel.recv(4096):
                heard += part
                whole = len(heard) // QUESTION.size * QUESTION.size
                if whole:
                    (number,) = QUESTION.unpack(heard[whole - QUESTION.size : whole])
                    heard = heard[whole:]
                    self._report(number)

    def _report(self, number: int) -> None:
        """Send the figures, or the last ones where a metric of the app's own fails."""
        with self._lock:
            try:
                figures = [plain(metric) for metric in self._metrics.collect()]
                self._told = json.dumps(figures).encode()
            except Exception as error:
                log.error("the metrics cannot be shown: %s", error, exc_info=error)
            self._channel.sendall(ANSWER.pack(number, len(self._told)) + self._told)


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
            child.hear_rest()  # it may have said farewell
            channel.close()
            lasting = [family for family in child.last if family["type"] in LASTING]
            self._departed = [plain(metric) for metric in merge([self._departed, lasting])]

    def collect(self) -> "Iterator[Metric]":
        """Ask the children and add up; of one that does not answer its last word counts."""
        with self._lock:
            children = list(self._living.values())
            for child in children:
                child.ask()
            _hear(children, PATIENCE)
            families = [self._departed, *(child.last for child in children)]
        return iter(merge(families))


class _Child:
    """What one child said last, and what of its next word has arrived."""

    def __init__(self, channel: socket.socket) -> None:
        self.channel = channel
        self.channel.setblocking(False)
        self.last: list[Family] = []
        self._heard = bytearray()
        self._asked = 0
        self._answered = 0
        self._is_gone = False

    @property
    def is_waited_for(self) -> bool:
        """Whether the newest question is open; the answer to an earlier one does not close it."""
        return self._answered != self._asked and not self._is_gone

    def ask(self) -> None:
        self._asked += 1
        with suppress(OSError):
            self.channel.sendall(QUESTION.pack(self._asked))

    def hear(self) -> bool:
        """Take in what has arrived; return False where that is nothing."""
        try:
            part = self.channel.recv(2**20)
        except BlockingIOError:
            return False
        except OSError:
            part = b""
        if not part:
            self._is_gone = True
            return False
        self._heard += part
        while self._take():
            pass
        return True

    def hear_rest(self) -> None:
        """Take in all that an ended child has sent."""
        while self.hear():
            pass

    def _take(self) -> bool:
        if len(self._heard) < ANSWER.size:
            return False
        number, length = ANSWER.unpack_from(self._heard)
        end = ANSWER.size + length
        if len(self._heard) < end:
            return False
        # A late answer is older than the one that is waited for, and newer than the last.
        self.last = json.loads(self._heard[ANSWER.size : end])
        self._answered = number or self._answered
        del self._heard[:end]
        return True


def _hear(children: "Iterable[_Child]", patience: float) -> None:
    """Read from all children at once, so that a silent one does not use up the others' time."""
    deadline = monotonic() + patience
    with selectors.DefaultSelector() as selector:
        for child in children:
            if child.is_waited_for:
                selector.register(child.channel, selectors.EVENT_READ, child)
        while selector.get_map() and (left := deadline - monotonic()) > 0:
            for key, _ in selector.select(left):
                key.data.hear()
                if not key.data.is_waited_for:
                    selector.unregister(key.fileobj)


def plain(metric: "Metric") -> Family:
    """Return a metric as values that JSON has."""
    return {
        "name": metric.name,
        "help": metric.documentation,
        "type": metric.type,
        "samples": [[s.name, s.labels, s.value] for s in metric.samples],
    }


def merge(sources: Iterable[Iterable[Family]]) -> "list[Metric]":
    """Join the samples of several processes that have the same name and labels."""
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
    """Return how two processes' values of a sample become one."""
    if family["type"] in LASTING and sample == f"{family['name']}_created":
        return min  # a time: the sum counts since the first of them began to count
    if family["type"] in ("info", "stateset"):
        return max  # 1 where it is so in any of them
    return operator.add
