"""Runs several workers as child processes and restarts those that crash."""

import asyncio
import logging
import signal
import socket
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from forge.cli.processes.child_process import STARTUP_FAILED, ForgeProcess, on_stop_signal
from forge.cli.processes.metrics_output import served
from forge.cli.processes.service_manager import ServiceManager
from forge.store.connection.waiting import within
from forge.telemetry.metrics.exposition import Check
from forge.telemetry.metrics.merging import MergedMetrics

if TYPE_CHECKING:
    from forge.config.settings import WorkerConfig

# Seconds before a crashed worker is restarted: doubled at each crash, up to the maximum.
FIRST_RESTART_DELAY = 0.5
MAX_RESTART_DELAY = 30.0
# Seconds of running after which the delay starts over.
HEALTHY_AFTER = 60.0
COLLECT_INTERVAL = 5.0

log = logging.getLogger("forge")


async def supervise(arguments: Sequence[str], count: int, settings: "WorkerConfig") -> int:
    """Keep `count` workers running until a stop signal; return 0 if all exited cleanly."""
    metrics = None if settings.metrics_port is None else MergedMetrics()
    supervisor = _Supervisor(arguments, metrics)
    manager = ServiceManager.from_environment()

    def stop() -> None:
        manager.stopping()
        supervisor.stop()

    on_stop_signal(stop)
    log.info("starting %d workers", count)
    with served(settings, metrics or MergedMetrics(), supervisor.checks(count)):
        rounds = [asyncio.ensure_future(supervisor.collect())]
        manager.ready()
        rounds.append(asyncio.ensure_future(manager.stay_alive()))
        codes = await asyncio.gather(*(supervisor.keep(place) for place in range(1, count + 1)))
        for task in rounds:
            task.cancel()
    return 1 if any(codes) else 0


class _Supervisor:
    def __init__(self, arguments: Sequence[str], metrics: MergedMetrics | None) -> None:
        self._arguments = arguments
        self._metrics = metrics
        self._running: set[ForgeProcess] = set()
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Forward a signal: the first lets the workers finish, the second stops them at once."""
        self._stopping.set()
        for worker in self._running:
            worker.stop()

    def checks(self, count: int) -> Mapping[str, Check]:
        """Return the health checks of all workers together."""

        def find_absence() -> str | None:
            if self._stopping.is_set():
                return "draining"
            running = len(self._running)
            return None if running == count else f"{running} of {count} workers run"

        return {"/livez": lambda: None, "/readyz": find_absence}

    async def collect(self) -> None:
        """Collect metrics periodically, so that a crash loses only the latest."""
        while self._metrics is not None:
            await asyncio.to_thread(self._metrics.collect)
            await asyncio.sleep(COLLECT_INTERVAL)

    async def keep(self, place: int) -> int:
        """Run one worker, restart it when it crashes, and return its last exit code."""
        delay = FIRST_RESTART_DELAY
        loop = asyncio.get_running_loop()
        code, is_first = 0, True
        while not self._stopping.is_set():
            began = loop.time()
            code = await self._run_once(place)
            if code == 0 or self._stopping.is_set() or (is_first and code == STARTUP_FAILED):
                break
            is_first = False  # after a successful start, a failed one may be temporary
            if loop.time() - began > HEALTHY_AFTER:
                delay = FIRST_RESTART_DELAY
            log.error("worker %d exited (%s); restarting in %g s", place, _reason(code), delay)
            if await within(self._stopping, delay):
                return 0
            delay = min(delay * 2, MAX_RESTART_DELAY)
        # Stopped before it installed its signal handlers: it had started nothing.
        return 0 if code == -signal.SIGTERM else code

    async def _run_once(self, place: int) -> int:
        ours, theirs = socket.socketpair()
        with theirs:
            arguments = list(self._arguments)
            if self._metrics is not None:
                arguments += ["--reports", str(theirs.fileno())]
            worker = await ForgeProcess.start(arguments, sockets=[theirs.fileno()])
        self._running.add(worker)
        if self._metrics is not None:
            self._metrics.add_child(ours)
        if self._stopping.is_set():  # a signal arrived during the start
            worker.stop()
        log.info("worker %d is process %d", place, worker.pid)
        try:
            return await worker.ended()
        finally:
            self._running.discard(worker)
            if self._metrics is not None:
                await asyncio.to_thread(self._metrics.remove_child, ours)
            ours.close()


def _reason(code: int) -> str:
    return f"exit code {code}" if code > 0 else signal.Signals(-code).name
