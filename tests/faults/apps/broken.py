"""Engines that are broken on purpose, in this process only: the tests must catch each."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Any

from forge.store import jobs, messages, workers
from forge.transports.postgres import WakeListener
from forge.worker.claimer import PollInterval
from forge.worker.heartbeat import Heartbeat


def no_fence() -> None:
    """Any attempt can complete the job, also one that no longer owns it."""
    _edit(jobs, "jobs/complete", r" and job\.lease = ack\.lease", "")


def rescue_by_id() -> None:
    """Rescue the jobs of all other workers, whether they are alive or dead."""
    _edit(
        jobs,
        "jobs/rescue",
        r"and coalesce\(.*?\n(?=    limit)",
        "and $3::float8 + $4::float8 >= 0\n",
    )
    _edit(
        workers,
        "workers/beat",
        r"id <> \$1 and last_heartbeat < now\(\) - make_interval\(secs => \$13\)",
        "id <> $1",
    )


def claim_on_hearsay() -> None:
    """Claim the job that a message names, even when another worker is running it."""
    _edit(
        messages,
        "messages/claim",
        r"and coalesce\(\s*\(select coalesce.*?secs => \$8\)\)\)",
        "and coalesce($7::float8, 0) + $8::float8 >= 0)",
    )


def heartbeat_on_the_loop() -> None:
    """Send heartbeats from the event loop, so that a blocking handler delays them."""

    def start(heartbeat: Any) -> None:
        heartbeat.beating = asyncio.get_running_loop().create_task(heartbeat._beat_on())

    def stop(heartbeat: Any) -> None:
        heartbeat._loop.call_soon_threadsafe(heartbeat._stop.set)

    Heartbeat.start = start  # type: ignore[method-assign]
    Heartbeat.stop = stop  # type: ignore[method-assign]


def listener_without_poll() -> None:
    """Rely on notifications alone: no polling, and no check of the listener."""
    PollInterval.seconds = lambda poll: 3600.0  # type: ignore[method-assign]
    WakeListener._check = lambda wake_listener: None  # type: ignore[method-assign]


BROKEN: dict[str, Callable[[], None]] = {
    "no fence": no_fence,
    "rescue by id": rescue_by_id,
    "claim on hearsay": claim_on_hearsay,
    "heartbeat on the loop": heartbeat_on_the_loop,
    "listener without poll": listener_without_poll,
}


def _edit(module: Any, name: str, pattern: str, replacement: str) -> None:
    load = module.load
    edited, count = re.subn(pattern, replacement, load(name), flags=re.DOTALL)
    if count != 1:
        raise AssertionError(f"{name}.sql has changed: {pattern!r} is not in it once")
    module.load = lambda requested: edited if requested == name else load(requested)
