"""The events of a fault run, recorded by all processes in one file."""

from __future__ import annotations

import json
import os
import time
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path


class Kind(StrEnum):
    """The steps of a job that are recorded."""

    # Written before the call: a dispatch whose answer was lost may still run.
    DISPATCHING = "dispatching"
    # Written after the call: the dispatch was acknowledged, so the job must not be lost.
    DISPATCHED = "dispatched"
    CLAIMED = "claimed"
    STARTED = "started"
    FINISHED = "finished"
    ACCEPTED = "accepted"
    # Not about a job: a worker's first heartbeat after it counted as dead.
    HEARD_AGAIN = "heard again"


@dataclass(frozen=True, slots=True)
class Event:
    """One step of one job; monotonic times of processes on one machine are comparable."""

    kind: Kind
    job: str
    lease: int = 0
    worker: str = ""
    # The job's status after an accepted outcome.
    status: str = ""
    pid: int = 0
    monotonic: float = 0.0
    wall: float = 0.0
    # For HEARD_AGAIN: the time of the previous heartbeat, and when the worker counted as dead.
    since: float = 0.0
    dead_at: float = 0.0


class History:
    """An append-only file that many processes write and one test reads."""

    def __init__(self, path: Path | str, *, pid: int | None = None) -> None:
        self.path = Path(path)
        # A child process records under its worker's pid, because tests halt the worker.
        self._pid = pid

    def dispatching(self, job: object) -> None:
        self._record(Kind.DISPATCHING, job)

    def dispatched(self, job: object) -> None:
        self._record(Kind.DISPATCHED, job)

    def claimed(self, job: object, lease: int, worker: str) -> None:
        self._record(Kind.CLAIMED, job, lease, worker)

    def started(self, job: object, lease: int, worker: str) -> None:
        self._record(Kind.STARTED, job, lease, worker)

    def finished(self, job: object, lease: int, worker: str) -> None:
        self._record(Kind.FINISHED, job, lease, worker)

    def accepted(self, job: object, lease: int, worker: str, status: str) -> None:
        self._record(Kind.ACCEPTED, job, lease, worker, status)

    def heard_again(self, worker: str, since: float, dead_at: float) -> None:
        self._record(Kind.HEARD_AGAIN, "", worker=worker, since=since, dead_at=dead_at)

    def events(self) -> list[Event]:
        """All events so far, in the order of their monotonic time."""
        if not self.path.exists():
            return []
        # A line that crosses a page of the file can be seen before its end is written.
        whole, _, _ = self.path.read_text().rpartition("\n")
        return sorted(map(_event, whole.splitlines()), key=lambda event: event.monotonic)

    def _record(
        self,
        kind: Kind,
        job: object,
        lease: int = 0,
        worker: str = "",
        status: str = "",
        since: float = 0.0,
        dead_at: float = 0.0,
    ) -> None:
        event = Event(
            kind=kind,
            job=str(job),
            lease=lease,
            worker=worker,
            status=status,
            pid=self._pid or os.getpid(),
            monotonic=time.monotonic(),
            wall=time.time(),
            since=since,
            dead_at=dead_at,
        )
        _append(self.path, json.dumps(asdict(event)) + "\n")


def _append(path: Path, line: str) -> None:
    # A single write to an O_APPEND file is not interleaved with others or split by a kill.
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    try:
        os.write(file, line.encode())
    finally:
        os.close(file)


def _event(line: str) -> Event:
    fields = json.loads(line)
    return Event(**{**fields, "kind": Kind(fields["kind"])})
