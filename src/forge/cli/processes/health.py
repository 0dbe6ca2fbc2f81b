"""The health checks of a worker, for the probes of a container platform."""

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from forge.core.events import Event, WorkerAlive
from forge.telemetry.metrics.exposition import Check

if TYPE_CHECKING:
    from forge.worker.worker import Worker


# Seconds of silence that are no fault: the process may have had no processor.
MARGIN = 5.0


class WorkerHealth:
    """Answers `/livez` and `/readyz` of a worker."""

    def __init__(self, worker: "Worker") -> None:
        self._worker = worker
        self._alive_at = time.monotonic()
        worker.events.other_listeners.append(self._listen)

    @property
    def checks(self) -> Mapping[str, Check]:
        return {"/livez": self._find_hang, "/readyz": self._find_absence}

    def _listen(self, event: Event) -> None:
        if isinstance(event, WorkerAlive):
            self._alive_at = time.monotonic()

    def _find_hang(self) -> str | None:
        """An outage of the database is no reason to restart a worker: it recovers by itself."""
        silent = time.monotonic() - self._alive_at
        allowed = 5 * self._worker.settings.heartbeat_interval.total_seconds() + MARGIN
        return f"its heartbeat thread is silent for {silent:.0f} s" if silent > allowed else None

    def _find_absence(self) -> str | None:
        if self._worker.is_draining:
            return "draining"
        if not self._worker.liveness.is_heard():
            return "the database does not receive this worker's heartbeats"
        return self._find_hang()
