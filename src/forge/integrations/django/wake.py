"""Wakes workers after the commit of a transaction that dispatched."""

import random
from typing import Any
from weakref import WeakKeyDictionary

from forge.core.workers.wakeups import call
from forge.integrations.django.database import run_here
from forge.store.notify import WAKE, send


class PendingWake:
    """The jobs that one transaction has dispatched: one notification announces them all."""

    def __init__(self) -> None:
        self.jobs = 0
        self.has_request = False
        self.is_sent = False

    def send(self) -> None:
        """Notify workers; called after the commit, once per dispatch that was not rolled back."""
        if self.is_sent:
            return
        self.is_sent = True
        # After the commit: a notification inside a transaction makes all notifying commits wait.
        run_here(send(WAKE, call(self.jobs, random.getrandbits(31), is_request=self.has_request)))


_PENDING: WeakKeyDictionary[Any, PendingWake] = WeakKeyDictionary()


def wake_on_commit(connection: Any, jobs: int, *, is_request: bool = False) -> None:
    """Wake workers once this connection's transaction has committed."""
    pending = _PENDING.get(connection)
    if pending is None or pending.is_sent:
        pending = _PENDING[connection] = PendingWake()
    pending.jobs += jobs
    pending.has_request |= is_request
    # robust: a lost notification delays jobs until the workers poll, and must not fail the request.
    connection.on_commit(pending.send, robust=True)
