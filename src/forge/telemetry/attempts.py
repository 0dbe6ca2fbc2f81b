"""Metrics of attempts: a listener that costs each of them less than a microsecond."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable

from forge.core.clock import DatabaseClock
from forge.core.event import (
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
from forge.telemetry.instruments import Amounts, Spread
from forge.telemetry.metrics import WorkerMetrics

NEVER = float("inf")


def measure_attempts(events: Events, metrics: WorkerMetrics, clock: DatabaseClock) -> None:
    """Count and measure the attempts of a worker from now on."""
    listener = AttemptListener(metrics, clock)
    events.begin_listeners.append(listener.began)
    events.completion_listeners.append(listener.completed)
    events.other_listeners.append(listener.other)


def measure_running(metrics: WorkerMetrics, running: Callable[[], Iterable[Job]]) -> None:
    """Show how many attempts run, by type, whenever somebody looks."""
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
        # Of each type that has completed: how long its jobs wait, and how long these took.
        self._of_type: dict[str, tuple[Spread, Spread]] = {}

    def began(self, job: Job, when: float) -> None:
        """An attempt started: it had waited since its job was due, by the database's clock."""
        waits = self._metrics.job_queue_latency_milliseconds.labelled(job.type)
        waited = (when + self._clock.ahead - job.due) * 1000
        waits.observe(waited if 0 <= waited < NEVER else 0.0)

    def completed(self, job: Job, seconds: float, began: float | None) -> None:
        """An attempt succeeded: what is called for each of them is written out here."""
        waits, spread = self._of_type.get(job.type) or self._add_type(job.type)
        spread.counts[bisect_left(spread.bounds, seconds)] += 1
        spread.total += seconds
        if began is not None:
            waited = (began + self._clock.ahead - job.due) * 1000
            # Two clocks are never quite the same, and SQL may schedule for -infinity.
            if not 0 <= waited < NEVER:
                waited = 0.0
            waits.counts[bisect_left(waits.bounds, waited)] += 1
            waits.total += waited

    def other(self, event: Event) -> None:
        """Something else happened."""
        match event:
            case AttemptEnded(job, _, Settlement(status=status), seconds):
                self._spread(job.type, status).observe(seconds)
            case AttemptStopped(job, seconds, _):
                self._spread(job.type, Status.CANCELLED).observe(seconds)
            case AttemptRefused(_, _, act):
                self._metrics.attempts_refused.labelled(act).add()
            case JobsRescued(job_ids):
                self._metrics.jobs_rescued.labelled().add(len(job_ids))

    def _add_type(self, job_type: str) -> tuple[Spread, Spread]:
        waits = self._metrics.job_queue_latency_milliseconds.labelled(job_type)
        added = self._of_type[job_type] = waits, self._spread(job_type, Status.COMPLETED)
        return added

    def _spread(self, job_type: str, status: Status) -> Spread:
        return self._metrics.job_processing_duration_seconds.labelled(job_type, str(status))
