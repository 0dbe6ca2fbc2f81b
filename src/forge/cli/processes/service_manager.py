"""Reports to the service manager that started this process, such as systemd (`sd_notify`)."""

import asyncio
import os
import socket
from contextlib import suppress
from typing import Self

from forge.core.events import Event, WorkerAlive


class ServiceManager:
    """Sends states to the socket in NOTIFY_SOCKET; without one, does nothing."""

    def __init__(self, address: str | None, watchdog: float | None) -> None:
        """`watchdog` is the seconds after which the manager kills a silent process."""
        self._address = address
        self.watchdog = watchdog if address is not None else None

    @classmethod
    def from_environment(cls) -> Self:
        """Take over the variables, so that child processes and handlers do not inherit them."""
        address = os.environ.pop("NOTIFY_SOCKET", None)
        microseconds = os.environ.pop("WATCHDOG_USEC", None)
        process = os.environ.pop("WATCHDOG_PID", None)
        is_ours = process in (None, str(os.getpid()))
        watchdog = int(microseconds) / 1e6 if microseconds and is_ours else None
        return cls(address, watchdog)

    def ready(self) -> None:
        self._send("READY=1")

    def stopping(self) -> None:
        self._send("STOPPING=1")

    def alive(self) -> None:
        if self.watchdog is not None:
            self._send("WATCHDOG=1")

    def listen(self, event: Event) -> None:
        """Report that the worker is alive."""
        if isinstance(event, WorkerAlive):
            self.alive()

    async def stay_alive(self) -> None:
        """Report that the event loop runs, until cancelled."""
        while self.watchdog is not None:
            self.alive()
            await asyncio.sleep(self.watchdog / 3)

    def _send(self, state: str) -> None:
        if self._address is None:
            return
        address = self._address
        if address.startswith("@"):  # an abstract socket
            address = "\0" + address[1:]
        # A manager that does not listen must not end a worker.
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.setblocking(False)
            sender.sendto(state.encode(), address)
