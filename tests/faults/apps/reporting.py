"""How code inside a worker process reports to the test."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from forge import JobContext
from tests.faults.kit.history import History

HISTORY = "FAULTS_HISTORY"
WORKER_PID = "FAULTS_WORKER_PID"


def report(what: str, **detail: Any) -> None:
    """Print one line of JSON for the test to read."""
    line = json.dumps({"event": what, **detail}, default=str) + "\n"
    # One write, so that the lines of threads and children never mix.
    os.write(sys.stdout.fileno(), line.encode())


def history() -> History:
    """The history of the run; entries name the worker process."""
    return History(os.environ[HISTORY], pid=int(os.environ[WORKER_PID]))


@contextmanager
def recorded(ctx: JobContext) -> Iterator[None]:
    """Record the start of an attempt and the end of its handler, whatever the outcome."""
    worker = os.environ[WORKER_PID]
    history().started(ctx.job_id, ctx.lease, worker)
    try:
        yield
    finally:
        history().finished(ctx.job_id, ctx.lease, worker)
