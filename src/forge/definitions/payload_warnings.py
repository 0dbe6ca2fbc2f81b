"""Warnings about payloads without a category: sensitive or oversized content, once each."""

import logging

from forge.core.events import Events, PayloadDoubted
from forge.core.job_type import JobType
from forge.core.payload import decode
from forge.core.payload_rules import RECOMMENDED_SIZE
from forge.core.sensitive.findings import sensitive_faults

# The first payloads of each type are all examined; after that, one in EVERY.
FIRST = 256
EVERY = 512
MAX_WARNINGS = 10

log = logging.getLogger("forge")


class PayloadWarnings:
    """Examines payloads, and logs each warning once."""

    def __init__(self, events: Events) -> None:
        self._events = events
        self._seen: dict[str, int] = {}
        self._warned: dict[str, set[str]] = {}

    def sample(self, job_type: JobType, text: str) -> None:
        """Examine the payload if it is among the first of its type, or in the sample after."""
        seen = self._seen.get(job_type.name, 0)
        self._seen[job_type.name] = seen + 1
        if seen < FIRST or seen % EVERY == 0:
            self.examine(job_type, text)

    def examine(self, job_type: JobType, text: str) -> None:
        """Warn about the size and the sensitive content of a payload without a category."""
        if job_type.name.startswith("forge."):
            return
        self.check_size(job_type, text)
        for fault in sensitive_faults(decode(text), job_type.allow_sensitive):
            self._warn(job_type.name, fault.path, fault.message)

    def check_size(self, job_type: JobType, text: str) -> None:
        """Warn about a payload that is larger than recommended."""
        size = len(text) if text.isascii() else len(text.encode())
        if size > RECOMMENDED_SIZE:
            self._warn(
                job_type.name,
                "$",
                f"is larger than {RECOMMENDED_SIZE:,} bytes; store the content elsewhere and pass "
                "a reference",
            )

    def _warn(self, name: str, path: str, message: str) -> None:
        warned = self._warned.setdefault(name, set())
        warning = f"{path} {message}"
        if warning in warned or len(warned) >= MAX_WARNINGS:
            return
        warned.add(warning)
        log.warning("the payload of %s: %s %s", name, path, message)
        self._events.emit(PayloadDoubted(name, path, message))
