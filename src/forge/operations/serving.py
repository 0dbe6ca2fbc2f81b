"""Which lanes a worker serves."""

from collections.abc import Container

from forge.core.job import BUILTIN_QUEUE, CANARY
from forge.core.schedules.run import NO_QUEUE
from forge.core.workers.lanes import worker_group_name
from forge.store.jobs import Lane
from forge.store.workers import Registration


def serves(worker: Registration, lane: Lane, requests: Container[str]) -> bool:
    """Whether a worker may claim the jobs of a lane; `requests` are the built-in types it knows."""
    if lane.queue == BUILTIN_QUEUE:
        if lane.job_type == CANARY:
            return lane.worker_capability == worker_group_name(worker.capabilities, worker.queues)
        return lane.job_type in requests
    if lane.worker_capability is not None and lane.worker_capability not in worker.capabilities:
        return False
    if lane.queue == NO_QUEUE:
        return lane.job_type in worker.schedule_types
    return lane.job_type in worker.job_types and (
        worker.queues is None or lane.queue in worker.queues
    )
