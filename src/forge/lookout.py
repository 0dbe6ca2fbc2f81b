"""A look at payloads without a category: what had better not be there is warned of, once."""

import logging

from forge.core.event import Events, PayloadDoubted
from forge.core.payload import decode
from forge.core.rules import RECOMMENDED_SIZE
from forge.core.sensitive import sensitive_faults
from forge.core.wish import TypeDefaults

# Of each type the first payloads are looked at closely, and of the many that follow a sample.
FIRST = 256
EVERY = 512
MOST_WARNINGS = 10

log = logging.getLogger("forge")


class Lookout:
    """Remembers what it has warned of, so that nobody is told the same twice."""

    def __init__(self, events: Events) -> None:
        self._events = events
        self._looks: dict[str, int] = {}
        self._told: dict[str, set[str]] = {}

    def look(self, kind: TypeDefaults, text: str) -> None:
        """Look at one payload of a type without a category, if it is its turn."""
        looks = self._looks.get(kind.name, 0)
        self._looks[kind.name] = looks + 1
        if looks < FIRST or looks % EVERY == 0:
            self.examine(kind, text)

    def examine(self, kind: TypeDefaults, text: str) -> None:
        """Look at one payload of a type without a category."""
        if kind.name.startswith("forge."):
            return
        self.weigh(kind, text)
        for fault in sensitive_faults(decode(text), kind.allow_sensitive):
            self._warn(kind.name, fault.path, fault.message)

    def weigh(self, kind: TypeDefaults, text: str) -> None:
        """Warn of a payload that is larger than it should be."""
        size = len(text) if text.isascii() else len(text.encode())
        if size > RECOMMENDED_SIZE:
            self._warn(
                kind.name,
                "$",
                f"is larger than {RECOMMENDED_SIZE:,} bytes; store the content elsewhere and pass "
                "a reference",
            )

    def _warn(self, job_type: str, path: str, message: str) -> None:
        told = self._told.setdefault(job_type, set())
        place = f"{path} {message}"
        if place in told or len(told) >= MOST_WARNINGS:
            return
        told.add(place)
        log.warning("the payload of %s: %s %s", job_type, path, message)
        self._events.emit(PayloadDoubted(job_type, path, message))
