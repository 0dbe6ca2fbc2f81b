"""Real processes under real signals."""

import asyncio
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from inspect import isawaitable
from pathlib import Path
from typing import Any

from faultbench.history import History, Kind

ROOT = Path(__file__).parent.parent
# Set in the environment of every process of a run, so that the run can kill all of them.
MARK = "FAULTBENCH_RUN"
INTERVAL = 0.02


class Process:
    """A process whose output goes to a file; its history records pauses and kills."""

    def __init__(
        self,
        args: Sequence[str | Path],
        log: Path,
        *,
        env: Mapping[str, str] | None = None,
        history: History | None = None,
        account: tuple[int, int] | None = None,
        cwd: Path = ROOT,
    ) -> None:
        self.log_path = log
        self._history = history
        user, group = account or (None, None)
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                [str(arg) for arg in args],
                env={**os.environ, "PYTHONUNBUFFERED": "1", **(env or {})},
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                user=user,
                group=group,
                extra_groups=None if account is None else [],
                # Keeps Ctrl-C in the terminal from becoming an unplanned fault.
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def code(self) -> int | None:
        """The exit code, or None while the process runs."""
        return self._process.poll()

    @property
    def is_alive(self) -> bool:
        return self.code is None

    def log(self) -> str:
        return self.log_path.read_text(errors="replace")

    def kill(self) -> None:
        """SIGKILL this process only."""
        self._signal(signal.SIGKILL, Kind.KILLED)
        self._process.wait(10)

    def pause(self) -> None:
        self._signal(signal.SIGSTOP, Kind.PAUSED)

    def resume(self) -> None:
        self._signal(signal.SIGCONT, Kind.RESUMED)

    def terminate(self) -> None:
        self._signal(signal.SIGTERM)

    def interrupt(self) -> None:
        self._signal(signal.SIGINT)

    def quit(self) -> None:
        self._signal(signal.SIGQUIT)

    async def ended(self, timeout: float = 30) -> int:
        """Wait until the process exits and return the exit code."""
        await until(lambda: not self.is_alive, timeout, f"process {self.pid} has exited")
        return self._process.wait(0)

    def close(self) -> None:
        """Kill the process and its process group."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(10)

    def _signal(self, number: signal.Signals, kind: Kind | None = None) -> None:
        if kind is Kind.RESUMED and self._history:
            self._history.record(kind, pid=self.pid)
        with suppress(ProcessLookupError):
            self._process.send_signal(number)
        if kind not in (None, Kind.RESUMED) and kind is not None and self._history:
            self._history.record(kind, pid=self.pid)


async def until(predicate: Callable[[], Any], timeout: float, what: str) -> Any:
    """Wait for a condition and return its value; `what` describes it in the timeout error."""
    deadline = time.monotonic() + timeout
    while True:
        value = predicate()
        if isawaitable(value):
            value = await value
        if value:
            return value
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {timeout:g} s: {what}")
        await asyncio.sleep(INTERVAL)


def end_marked(run: str) -> None:
    """Kill the remaining processes of a run: children that outlived their parent."""
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        with suppress(OSError):
            if f"{MARK}={run}".encode() in (entry / "environ").read_bytes().split(b"\0"):
                os.kill(int(entry.name), signal.SIGKILL)
