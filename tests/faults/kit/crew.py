"""Worker processes of a test, each with a name in the database and a voice in a file."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

from tests.faults.apps.telling import HISTORY
from tests.faults.kit.checker import Halt
from tests.faults.kit.history import History
from tests.faults.kit.process import Child, until
from tests.faults.worker_process import ORDER

ROOT = Path(__file__).parents[3]
# Quick to notice a death, and yet slow enough for a busy machine not to imagine one.
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
    """A worker that says what happens to it, in lines of JSON."""

    def __init__(self, worker_id: UUID, env: dict[str, str], output: Path) -> None:
        self.id = worker_id
        args = [sys.executable, "-m", "tests.faults.worker_process"]
        super().__init__(args, env, output=output, cwd=ROOT)

    def said(self, what: str, **expected: Any) -> list[dict[str, Any]]:
        """What it said of this kind, with at least these details."""
        wanted = {"said": what, **{key: _plain(value) for key, value in expected.items()}}
        return [line for line in self._lines() if wanted.items() <= line.items()]

    async def until_said(self, what: str, timeout: float = 30, **expected: Any) -> dict[str, Any]:
        """Wait until it says this."""
        found = await until(
            lambda: self.said(what, **expected) or not self.is_alive,
            timeout,
            f"worker {self.pid} said {what} {expected or ''}; it said:\n{self.output()}",
        )
        if found is True and not (found := self.said(what, **expected)):
            raise AssertionError(f"Worker {self.pid} ended before {what}:\n{self.output()}")
        return found[0]

    async def ended(self, timeout: float = 30) -> int:
        """Its exit code once it has ended; a proxy in this loop goes on meanwhile."""
        await until(lambda: not self.is_alive, timeout, f"worker {self.pid} has ended")
        return self.wait(0)

    def _lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.output().splitlines() if line.startswith("{")]


class Crew:
    """Starts workers and ends whatever is left of them."""

    def __init__(self, database_url: str, history: History, folder: Path) -> None:
        self.workers: list[WorkerProcess] = []
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
        **settings: Any,
    ) -> WorkerProcess:
        """Start a worker and wait until it works; keywords are settings of [worker]."""
        worker_id = id or uuid4()
        order = {
            "database_url": url or self._database_url,
            "worker": PACE | settings | {"id": str(worker_id)},
            "jobs": jobs,
            "broken": broken,
            "transport": transport or {},
            "database": {"pooler": pooler, "connect_timeout": "3s"},
        }
        env = {ORDER: json.dumps(order), HISTORY: str(self._history.path)}
        output = self._folder / f"worker_{len(self.workers)}.log"
        worker = WorkerProcess(worker_id, env, output)
        self.workers.append(worker)
        await worker.until_said("started")
        return worker

    @property
    def halts(self) -> list[Halt]:
        return [halt for worker in self.workers for halt in worker.halts]

    def close(self) -> None:
        for worker in self.workers:
            worker.close()

    def log(self) -> str:
        """Everything that all of them said."""
        return "\n".join(f"--- {worker.pid}\n{worker.output()}" for worker in self.workers)


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, UUID | os.PathLike) else value
