"""Which lanes a worker may take from."""

from forge.core.crew import crew_name
from forge.core.run import NO_QUEUE
from forge.requests import CANARY, QUEUE, REQUESTS
from forge.store.jobs import Lane
from forge.store.workers import Registration


def serves(worker: Registration, lane: Lane) -> bool:
    """Whether a worker may take the jobs of a lane."""
    if lane.queue == QUEUE:
        if lane.job_type == CANARY:
            return lane.worker_capability == crew_name(worker.capabilities, worker.queues)
        return lane.job_type in REQUESTS
    if lane.worker_capability is not None and lane.worker_capability not in worker.capabilities:
        return False
    if lane.queue == NO_QUEUE:
        return lane.job_type in worker.schedule_types
    return lane.job_type in worker.job_types and (
        worker.queues is None or lane.queue in worker.queues
    )
