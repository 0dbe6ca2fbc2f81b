"""What a worker hears: that there may be work, that a job was taken from it, its own knocking."""

import asyncio
from collections.abc import Callable, Sequence
from uuid import UUID

from forge.core.event import Events
from forge.core.herd import is_called, is_for_request
from forge.store.database import Database
from forge.store.listener import Listener
from forge.store.notify import WAKE, named_attempt, worker_channel

PASS_ON_INTERVAL = 1.0
Act = Callable[[], None]


class Ears:
    """Listens for one worker, and knows by its own knocking whether it still hears."""

    def __init__(
        self,
        database: Database,
        me: UUID,
        events: Events,
        *,
        knocks_every: float,
        look: Callable[[bool], None],
        is_full: Callable[[], bool],
        call_everyone: Act,
        doubt: Callable[[UUID, int], None],
    ) -> None:
        self._me = me
        self._events = events
        self._patience = 2 * knocks_every + 1
        self._look = look
        self._is_full = is_full
        self._call_everyone = call_everyone
        self._doubt = doubt
        self._loop = asyncio.get_running_loop()
        self._peers: Sequence[UUID] = ()
        self._heard_at = 0.0
        self._passed_on_at = 0.0
        self.listener = Listener(database, {WAKE: self._woken, worker_channel(me): self._called})

    @property
    def is_first(self) -> bool:
        """Whether this worker does what one alone of its kind has to do."""
        return list(self._peers[:1]) == [self._me]

    @property
    def hears(self) -> bool:
        """Whether the listener lately heard what this worker's own heart sends it."""
        return self.listener.hears and self._loop.time() - self._heard_at < self._patience

    def knocked(self, peers: Sequence[UUID]) -> None:
        """The heart has sent its knock, and knows who else is alive."""
        self._peers = peers
        # A blocked loop reads its sockets late: ask a moment after it has had the chance to.
        self._loop.call_later(1, self._check)

    def _check(self) -> None:
        if self.listener.hears and not self.hears:
            self._events.notice(
                "warning", "the listener does not hear; polling, and listening anew"
            )
            self.listener.reconnect()

    def _woken(self, payload: str) -> None:
        if not is_called(payload, self._me, self._peers):
            return
        self._look(is_for_request(payload))
        if payload and self._is_full():
            self._pass_on()

    def _pass_on(self) -> None:
        """Called, but with no slot free: let everyone know, though not all the time."""
        now = self._loop.time()
        if len(self._peers) > 1 and now - self._passed_on_at > PASS_ON_INTERVAL:
            self._passed_on_at = now
            self._call_everyone()

    def _called(self, payload: str) -> None:
        """Our own knocking, or a hint that a job of ours was cancelled."""
        self._heard_at = self._loop.time()
        if (attempt := named_attempt(payload)) is not None:
            self._doubt(*attempt)
