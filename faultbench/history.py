"""An append-only record of one run, written by all its processes."""

import json
import os
import time
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

VARIABLE = "FAULTBENCH_HISTORY"


class Kind(StrEnum):
    """What can happen in a run."""

    # Before the call: a dispatch whose response is lost may still run.
    DISPATCHING = "dispatching"
    # After the call: from here on the job must not be lost.
    ACKNOWLEDGED = "acknowledged"
    STARTED = "started"
    # The handler ended in any way; `detail` says how.
    ENDED = "ended"
    # A run of a schedule; `detail` names the tick.
    TICK = "tick"
    KILLED = "killed"
    # A child process of a worker has exited; the worker may have killed it.
    GONE = "gone"
    PAUSED = "paused"
    RESUMED = "resumed"


@dataclass(frozen=True, slots=True)
class Event:
    """One line of the history; monotonic times are comparable between processes of one machine."""

    kind: Kind
    # The dispatcher's own name for the job, stored in the job's input.
    mark: str = ""
    job: str = ""
    lease: int = 0
    pid: int = 0
    parent: int = 0
    monotonic: float = 0.0
    wall: float = 0.0
    detail: dict[str, Any] = field(default_factory=dict)


class History:
    """The file of one run."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)

    def record(
        self,
        kind: Kind,
        *,
        mark: str = "",
        job: object = "",
        lease: int = 0,
        pid: int = 0,
        **detail: Any,
    ) -> None:
        event = Event(
            kind=kind,
            mark=mark,
            job=str(job),
            lease=lease,
            pid=pid or os.getpid(),
            parent=os.getppid(),
            monotonic=time.monotonic(),
            wall=time.time(),
            detail=detail,
        )
        # One write in append mode is atomic against other processes and kills.
        file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        try:
            os.write(file, (json.dumps(asdict(event)) + "\n").encode())
        finally:
            os.close(file)

    def events(self, *kinds: Kind) -> list[Event]:
        """Return events ordered by monotonic time, all or of these kinds."""
        if not self.path.exists():
            return []
        found = map(_event, self.path.read_text().splitlines())
        wanted = (event for event in found if not kinds or event.kind in kinds)
        return sorted(wanted, key=lambda event: event.monotonic)


def _event(line: str) -> Event:
    values = json.loads(line)
    return Event(**{**values, "kind": Kind(values["kind"])})
