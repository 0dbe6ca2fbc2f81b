"""Worker processes of a test, each with an id in the database and an output file."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any, Self
from uuid import UUID, uuid4

from tests.faults.apps.reporting import HISTORY
from tests.faults.kit.checker import Halt
from tests.faults.kit.history import History
from tests.faults.kit.process import Child, until
from tests.faults.worker_process import ORDER

ROOT = Path(__file__).parents[3]
# Detects a dead worker quickly, but not so quickly that a busy machine causes false alarms.
PACE = {
    "heartbeat_interval": "200ms",
    "dead_after": "1s",
    "stale_threshold": "2s",
    "poll_interval": "50ms",
    "idle_poll_interval": "500ms",
    "shutdown_grace": "60s",
    "metrics_port": None,
}


class WorkerProcess(Child):
    """A worker that reports events as lines of JSON."""

    def __init__(self, worker_id: UUID, env: dict[str, str], output: Path) -> None:
        self.id = worker_id
        args = [sys.executable, "-m", "tests.faults.worker_process"]
        super().__init__(args, env, output=output, cwd=ROOT)

    def reported(self, what: str, **expected: Any) -> list[dict[str, Any]]:
        """The reported events of this name, with at least these details."""
        expected_items = {"event": what, **{key: _plain(value) for key, value in expected.items()}}
        return [line for line in self._lines() if expected_items.items() <= line.items()]

    async def until_reported(
        self, what: str, timeout: float = 30, **expected: Any
    ) -> dict[str, Any]:
        """Wait for an event, and return it."""
        found = await until(
            lambda: self.reported(what, **expected) or not self.is_alive,
            timeout,
            f"worker {self.pid} reported {what} {expected or ''}; its output:\n{self.output()}",
        )
        if found is True and not (found := self.reported(what, **expected)):
            raise AssertionError(f"Worker {self.pid} ended before {what}:\n{self.output()}")
        return found[0]

    async def ended(self, timeout: float = 30) -> int:
        """Wait for the exit code without blocking the loop, in which a proxy may run."""
        await until(lambda: not self.is_alive, timeout, f"worker {self.pid} has ended")
        return self.wait(0)

    def _lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.output().splitlines() if line.startswith("{")]


class Workers:
    """Starts worker processes, and kills the remaining ones at the end of the test."""

    def __init__(self, database_url: str, history: History, folder: Path) -> None:
        self.processes: list[WorkerProcess] = []
        self._database_url = database_url
        self._history = history
        self._folder = folder

    async def start(
        self,
        *,
        url: str | None = None,
        id: UUID | None = None,
        jobs: list[str] | None = None,
        broken: str | None = None,
        pooler: bool = False,
        transport: dict[str, Any] | None = None,
        statistics_interval: float | None = None,
        **settings: Any,
    ) -> WorkerProcess:
        """Start a worker and wait until it is ready; keywords are settings of [worker]."""
        worker_id = id or uuid4()
        order = {
            "database_url": url or self._database_url,
            "worker": PACE | settings | {"id": str(worker_id)},
            "jobs": jobs,
            "broken": broken,
            "transport": transport or {},
            "statistics_interval": statistics_interval,
            "database": {"pooler": pooler, "connect_timeout": "3s"},
        }
        env = {ORDER: json.dumps(order), HISTORY: str(self._history.path)}
        output = self._folder / f"worker_{len(self.processes)}.log"
        worker = WorkerProcess(worker_id, env, output)
        self.processes.append(worker)
        await worker.until_reported("started")
        return worker

    @property
    def halts(self) -> list[Halt]:
        return [halt for worker in self.processes for halt in worker.halts]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self.processes:
            worker.close()
        print(self.log())  # pytest shows it when the test fails

    def log(self) -> str:
        """The output of all workers."""
        return "\n".join(f"--- {worker.pid}\n{worker.output()}" for worker in self.processes)


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, UUID | os.PathLike) else value
