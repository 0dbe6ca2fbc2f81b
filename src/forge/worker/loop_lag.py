"""Warns when the event loop was blocked, since everything in the worker waits for it."""

import asyncio
import inspect
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import NamedTuple

from forge.core.events import Events
from forge.worker.attempts import Attempt
from forge.worker.held_work import HeldWork

INTERVAL = 0.1
# Seconds of lag that are warned of.
LAG = 1.0
# How often, in seconds, a thread beside the loop checks that the process itself runs.
TICK = 0.5
# How late the loop must be for the thread to record what it runs: short enough that at least one
# tick follows it before a lag is warned of.
SUSPICIOUS = 0.4


class Culprit(NamedTuple):
    """What the event loop ran while it was blocked."""

    attempt: Attempt | None
    place: str

    def __str__(self) -> str:
        job = self.attempt and self.attempt.job
        return f"job type {job.type!r} at {self.place}" if job else self.place

    def detail(self) -> dict[str, str]:
        job = self.attempt and self.attempt.job
        known = {"job_type": job.type, "job_id": str(job.id)} if job else {}
        return {**known, "place": self.place}


class LoopLagMonitor:
    """Checks the clock every tenth of a second, and warns when it could not, and why."""

    def __init__(self, events: Events, held: HeldWork) -> None:
        self._events = events
        self._held = held
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._looked_at = self._loop.time()
        self._used = time.process_time()
        self._culprit: Culprit | None = None
        self._ticker = Ticker(self._suspect)

    def look(self) -> None:
        """Warn when a handler blocked the loop, or the process was stopped."""
        now, used = self._loop.time(), time.process_time()
        stood_still = now - self._looked_at - INTERVAL
        if stood_still > LAG:
            self._warn(stood_still, used - self._used)
        self._looked_at, self._used, self._culprit = now, used, None

    def close(self) -> None:
        self._ticker.close()

    def _warn(self, seconds: float, used: float) -> None:
        # A handler that computes leaves the other threads running, or uses the processor.
        if self._ticker.late() > seconds / 2 and used < seconds / 2:
            self._events.notice(
                "warning",
                f"the whole process stood still for {seconds:.1f} s: it was stopped, its container "
                "was paused, or it got no processor time",
            )
            return
        culprit = self._culprit
        self._events.notice(
            "warning",
            f"the event loop stood still for {seconds:.1f} s"
            f"{f' in {culprit}' if culprit else ''}; a handler that computes or blocks should be a "
            "plain function, which runs in a thread",
            running=sorted(set(self._held.running_types())),
            **(culprit.detail() if culprit else {}),
        )

    def _suspect(self) -> None:
        """Record, in the ticker's thread, what the loop runs if it is late."""
        if self._loop.time() - self._looked_at - INTERVAL < SUSPICIOUS:
            return
        frame = sys._current_frames().get(self._thread)
        task = asyncio.current_task(self._loop)
        attempt = next((each for each in self._held.attempts() if each.task is task), None)
        if frame is not None and task is not None:
            self._culprit = Culprit(attempt, _place(frame, attempt))


def _place(frame: FrameType, attempt: Attempt | None) -> str:
    """Name the line of the handler's own file that is being run, or else the innermost one."""
    handler = attempt and inspect.unwrap(attempt.definition.handler)
    own = getattr(handler, "__code__", frame.f_code).co_filename
    found = next((each for each in _outwards(frame) if each.f_code.co_filename == own), frame)
    return f"{Path(found.f_code.co_filename).name}:{found.f_lineno} in {found.f_code.co_name}"


def _outwards(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


class Ticker:
    """A thread that checks the clock, and calls `tick` each time."""

    def __init__(self, tick: Callable[[], None]) -> None:
        self._tick = tick
        self._stop = threading.Event()
        self._ticked_at = time.monotonic()
        self._late = 0.0
        threading.Thread(target=self._run, name="forge-ticker", daemon=True).start()

    def late(self) -> float:
        """Return by how many seconds it was late at most since the last call."""
        late, self._late = max(self._late, time.monotonic() - self._ticked_at - TICK), 0.0
        return late

    def close(self) -> None:
        self._stop.set()

    def _run(self) -> None:
        while not self._stop.wait(TICK):
            now = time.monotonic()
            self._late = max(self._late, now - self._ticked_at - TICK)
            self._ticked_at = now
            self._tick()
