"""Which queue the message of a job is sent to, and which queues a worker polls."""

from collections.abc import Sequence
from typing import Protocol

from forge.config.transport import RouteConfig, SqsConfig
from forge.core.job import BUILTIN_QUEUE, Priority
from forge.core.schedules.run import NO_QUEUE


class Routed(Protocol):
    """The attributes that decide about the queue of a job."""

    @property
    def priority(self) -> int | None: ...
    @property
    def queue(self) -> str | None: ...
    @property
    def worker_capability(self) -> str | None: ...


class Routes:
    """The routes in the order of the file: the first that fits counts."""

    def __init__(self, settings: SqsConfig) -> None:
        self._routes = settings.routes
        self._default = settings.queue_url

    def queue_of(self, job: Routed) -> str | None:
        """Return the queue of a job; None for what workers find in PostgreSQL themselves."""
        if job.queue in (BUILTIN_QUEUE, NO_QUEUE):  # requests, and the runs of schedules
            return None
        fits = (route.queue_url for route in self._routes if _fits(route, job))
        return next(fits, self._default)

    def heard_by(self, capabilities: Sequence[str], queues: Sequence[str] | None) -> list[str]:
        """Return the queues with jobs for such a worker, the first of the file first."""
        heard = [
            route.queue_url
            for route in self._routes
            if _overlap(route.capabilities, capabilities) and _overlap(route.queues, queues)
        ]
        if self._default is not None:
            heard.append(self._default)
        return list(dict.fromkeys(heard))


def _fits(route: RouteConfig, job: Routed) -> bool:
    priority = None if job.priority is None else Priority(job.priority).name.lower()
    return (
        (not route.priorities or priority in route.priorities)
        and (not route.capabilities or job.worker_capability in route.capabilities)
        and (not route.queues or job.queue in route.queues)
    )


def _overlap(wanted: Sequence[str], offered: Sequence[str] | None) -> bool:
    """Whether a worker may serve some of a route; an empty list, or None, stands for all."""
    return not wanted or offered is None or bool(set(wanted) & set(offered))
