"""Builds the transport that the configuration names."""

from collections.abc import Callable
from uuid import UUID

from forge.config.settings import Config
from forge.core.events import Events
from forge.store.connection.database import Database
from forge.store.connection.link import Link
from forge.store.workers import Registration
from forge.transports.postgres import PostgresTransport
from forge.transports.sqs.transport import SqsTransport
from forge.transports.transport import Transport


def make_transport(
    config: Config,
    database: Database,
    link: Link,
    worker: Registration,
    is_running: Callable[[UUID], bool],
    events: Events,
) -> Transport:
    """Return the transport of one worker; `is_running` says whether that runs a job."""
    interval = config.worker.heartbeat_interval.total_seconds()
    postgres = PostgresTransport(database, link, interval, events)
    if (sqs := config.transport.queues) is None:
        return postgres
    return SqsTransport(sqs, database, postgres, worker, is_running, events)
