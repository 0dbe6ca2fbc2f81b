"""Several workers, each a process: those that crash are started again, those told to stop end."""

import asyncio
import logging
import signal
import socket
from collections.abc import Sequence
from typing import TYPE_CHECKING

from forge.cli.metrics_output import served
from forge.cli.offspring import CANNOT_BEGIN, ForgeProcess, obey
from forge.store.waiting import within
from forge.telemetry.merging import Gathered

if TYPE_CHECKING:
    from forge.config import WorkerConfig

FIRST_PAUSE = 0.5
LONGEST_PAUSE = 30.0
# One that ran this long before it crashed is given a fresh start.
HEALTHY = 60.0
LISTEN_INTERVAL = 5.0

log = logging.getLogger("forge")


async def supervise(arguments: Sequence[str], count: int, settings: "WorkerConfig") -> int:
    """Keep `count` workers running until told to stop; 0 when all of them ended in good order."""
    gathered = None if settings.metrics_port is None else Gathered()
    supervisor = _Supervisor(arguments, gathered)
    obey(supervisor.stop)
    log.info("starting %d workers", count)
    with served(settings, gathered or Gathered()):
        listening = asyncio.ensure_future(supervisor.listen())
        codes = await asyncio.gather(*(supervisor.keep(place) for place in range(1, count + 1)))
        listening.cancel()
    return 1 if any(codes) else 0


class _Supervisor:
    def __init__(self, arguments: Sequence[str], gathered: Gathered | None) -> None:
        self._arguments = arguments
        self._gathered = gathered
        self._running: set[ForgeProcess] = set()
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Pass a signal on: the first lets the workers finish, the second makes them let go."""
        self._stopping.set()
        for worker in self._running:
            worker.stop()

    async def listen(self) -> None:
        """Ask for figures now and then, so that those of a worker that crashes are not lost."""
        while self._gathered is not None:
            await asyncio.to_thread(self._gathered.collect)
            await asyncio.sleep(LISTEN_INTERVAL)

    async def keep(self, place: int) -> int:
        """Run one worker, again whenever it crashes, and return its last exit code."""
        pause = FIRST_PAUSE
        loop = asyncio.get_running_loop()
        code, is_first = 0, True
        while not self._stopping.is_set():
            began = loop.time()
            code = await self._run_once(place)
            if code == 0 or self._stopping.is_set() or (is_first and code == CANNOT_BEGIN):
                break
            is_first = False  # what worked once may work again
            if loop.time() - began > HEALTHY:
                pause = FIRST_PAUSE
            log.error("worker %d ended (%s); again in %g s", place, _how(code), pause)
            if await within(self._stopping, pause):
                return 0
            pause = min(pause * 2, LONGEST_PAUSE)
        # Told to stop before it could listen to signals: it had begun nothing.
        return 0 if code == -signal.SIGTERM else code

    async def _run_once(self, place: int) -> int:
        ours, theirs = socket.socketpair()
        with theirs:
            arguments = list(self._arguments)
            if self._gathered is not None:
                arguments += ["--reports", str(theirs.fileno())]
            worker = await ForgeProcess.start(arguments, sockets=[theirs.fileno()])
        self._running.add(worker)
        if self._gathered is not None:
            self._gathered.welcome(ours)
        if self._stopping.is_set():  # the signal came while it was being started
            worker.stop()
        log.info("worker %d is process %d", place, worker.pid)
        try:
            return await worker.ended()
        finally:
            self._running.discard(worker)
            if self._gathered is not None:
                await asyncio.to_thread(self._gathered.depart, ours)
            ours.close()


def _how(code: int) -> str:
    return f"exit code {code}" if code > 0 else signal.Signals(-code).name
