"""Engines that are broken on purpose, in this process only: the bench has to notice each."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Any

from forge.store import jobs, messages, workers
from forge.worker.ears import Ears
from forge.worker.heart import Heart
from forge.worker.worker import Worker


def no_fence() -> None:
    """Whoever finishes last has finished the job, whoever owns it by now."""
    _edit(jobs, "jobs/complete", r" and job\.lease = ack\.lease", "")


def rescue_by_id() -> None:
    """Everybody else's jobs are up for rescue, whether their worker lives or not."""
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
    """A message is believed: its job is claimed, whoever runs it already."""
    _edit(
        messages,
        "messages/claim",
        r"and coalesce\(\s*\(select coalesce.*?secs => \$8\)\)\)",
        "and coalesce($7::float8, 0) + $8::float8 >= 0)",
    )


def heartbeat_on_the_loop() -> None:
    """A handler that holds up the loop holds up the heartbeats, too."""

    def start(heart: Any) -> None:
        heart.beating = asyncio.get_running_loop().create_task(heart._beat_on())

    def stop(heart: Any) -> None:
        heart._loop.call_soon_threadsafe(heart._stop.set)

    Heart.start = start  # type: ignore[method-assign]
    Heart.stop = stop  # type: ignore[method-assign]


def listener_without_poll() -> None:
    """Trust in notifications is boundless."""
    Worker._poll = lambda worker: 3600.0  # type: ignore[method-assign]
    Ears._check = lambda ears: None  # type: ignore[method-assign]


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
    module.load = lambda wanted: edited if wanted == name else load(wanted)
