"""What a worker says of itself when it registers."""

import os
import socket
from importlib.metadata import version
from uuid import uuid4

from forge.app import Forge
from forge.store.workers import Registration


def registration_of(app: Forge) -> Registration:
    """Return who this process is and what it takes; each life of it has an incarnation."""
    settings = app.config.worker
    return Registration(
        settings.id or uuid4(),
        uuid4(),
        socket.gethostname(),
        os.getpid(),
        version("forge-jobs"),
        list(settings.capabilities),
        None if settings.queues is None else list(settings.queues),
        sorted(app.definitions),
        settings.max_concurrent,
        sorted(app.schedule_definitions),
    )
