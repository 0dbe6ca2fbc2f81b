"""How the code inside a worker process tells the test what happens to it."""

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


def say(what: str, **detail: Any) -> None:
    """Print one line of JSON for the test to read."""
    line = json.dumps({"said": what, **detail}, default=str) + "\n"
    # One write, so that the lines of threads and children never mix.
    os.write(sys.stdout.fileno(), line.encode())


def history() -> History:
    """The run's history, told in the name of the worker process."""
    return History(os.environ[HISTORY], pid=int(os.environ[WORKER_PID]))


@contextmanager
def told(ctx: JobContext) -> Iterator[None]:
    """Write down that an attempt starts, and that its code has ended however it ended."""
    worker = os.environ[WORKER_PID]
    history().started(ctx.job_id, ctx.lease, worker)
    try:
        yield
    finally:
        history().finished(ctx.job_id, ctx.lease, worker)
