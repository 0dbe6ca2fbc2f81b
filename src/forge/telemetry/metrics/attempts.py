"""Metrics of attempts: a listener that takes less than a microsecond per attempt."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable

from forge.core.events import (
    AttemptEnded,
    AttemptRefused,
    AttemptStopped,
    Event,
    Events,
    JobsRescued,
)
from forge.core.job import Job
from forge.core.lifecycle import Status
from forge.core.outcome import Settlement
from forge.core.workers.clock import DatabaseClock
from forge.telemetry.metrics.instruments import Amounts, HistogramSeries
from forge.telemetry.metrics.registries import WorkerMetrics

NEVER = float("inf")


def measure_attempts(events: Events, metrics: WorkerMetrics, clock: DatabaseClock) -> None:
    """Count and time the attempts of a worker from now on."""
    listener = AttemptListener(metrics, clock)
    events.begin_listeners.append(listener.began)
    events.completion_listeners.append(listener.completed)
    events.other_listeners.append(listener.other)


def measure_running(metrics: WorkerMetrics, running: Callable[[], Iterable[Job]]) -> None:
    """Report the number of running attempts by type, at each scrape."""
    seen: set[str] = set()

    def read() -> Amounts:
        counted = Counter(job.type for job in running())
        seen.update(counted)
        return {(job_type,): counted[job_type] for job_type in seen}

    metrics.job_active_count.read = read


class AttemptListener:
    """Feeds a worker's metrics; the series of each type are looked up once."""

    def __init__(self, metrics: WorkerMetrics, clock: DatabaseClock) -> None:
        self._metrics = metrics
        self._clock = clock
        # By type: the series of queue latency and of the duration of completed attempts.
        self._of_type: dict[str, tuple[HistogramSeries, HistogramSeries]] = {}

    def began(self, job: Job, when: float) -> None:
        """Record how long an attempt waited since its job was due, by the database's clock."""
        waits = self._metrics.job_queue_latency_milliseconds.labelled(job.type)
        waited = (when + self._clock.ahead - job.due) * 1000
        waits.observe(waited if 0 <= waited < NEVER else 0.0)

    def completed(self, job: Job, seconds: float, began: float | None) -> None:
        """Record a successful attempt; calls are inlined, because this runs for every job."""
        waits, durations = self._of_type.get(job.type) or self._add_type(job.type)
        durations.counts[bisect_left(durations.bounds, seconds)] += 1
        durations.total += seconds
        if began is not None:
            waited = (began + self._clock.ahead - job.due) * 1000
            # Clocks differ slightly, and SQL can schedule for -infinity.
            if not 0 <= waited < NEVER:
                waited = 0.0
            waits.counts[bisect_left(waits.bounds, waited)] += 1
            waits.total += waited

    def other(self, event: Event) -> None:
        """Record any other event."""
        match event:
            case AttemptEnded(job, _, Settlement(status=status), seconds):
                self._durations(job.type, status).observe(seconds)
            case AttemptStopped(job, seconds, _):
                self._durations(job.type, Status.CANCELLED).observe(seconds)
            case AttemptRefused(_, _, act):
                self._metrics.attempts_refused.labelled(act).add()
            case JobsRescued(job_ids):
                self._metrics.jobs_rescued.labelled().add(len(job_ids))

    def _add_type(self, job_type: str) -> tuple[HistogramSeries, HistogramSeries]:
        waits = self._metrics.job_queue_latency_milliseconds.labelled(job_type)
        added = self._of_type[job_type] = waits, self._durations(job_type, Status.COMPLETED)
        return added

    def _durations(self, job_type: str, status: Status) -> HistogramSeries:
        return self._metrics.job_processing_duration_seconds.labelled(job_type, str(status))
