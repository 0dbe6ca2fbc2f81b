"""Real processes with real signals, and the functions with which tests wait."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from inspect import isawaitable
from pathlib import Path
from types import TracebackType
from typing import TypeVar

import psutil

from tests.faults.kit.checker import Halt

Answer = TypeVar("Answer")

INTERVAL = 0.02
MARK = "FORGE_FAULTS_CHILD"


def spawn(
    args: Sequence[str | Path],
    env: Mapping[str, str] | None = None,
    *,
    output: Path | None = None,
    cwd: Path | None = None,
) -> Child:
    """Start a process whose output goes to a file; `env` extends this process's environment."""
    return Child(args, env or {}, output=output, cwd=cwd)


class Child:
    """A process that the test started; closing it also kills its descendants."""

    def __init__(
        self,
        args: Sequence[str | Path],
        env: Mapping[str, str],
        *,
        output: Path | None,
        cwd: Path | None,
    ) -> None:
        self.halts: list[Halt] = []
        self._mark = uuid.uuid4().hex
        self._output = output or Path(tempfile.mkstemp(prefix="forge-child-", suffix=".log")[1])
        self._keeps_output = output is not None
        with self._output.open("ab") as log:
            self._process = subprocess.Popen(
                [str(arg) for arg in args],
                env={**os.environ, "PYTHONUNBUFFERED": "1", **env, MARK: self._mark},
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                # Otherwise Ctrl-C in the terminal would reach it as an unplanned fault.
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.poll()

    @property
    def is_alive(self) -> bool:
        return self.returncode is None

    def sigkill(self) -> None:
        self._halt(signal.SIGKILL)

    def sigstop(self) -> None:
        """Stop the process and wait until the kernel reports it as stopped."""
        self._halt(signal.SIGSTOP)
        wait_until(self._is_stopped, 10, f"process {self.pid} is stopped")

    def sigcont(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def sigterm(self) -> None:
        self._process.send_signal(signal.SIGTERM)

    def wait(self, timeout: float) -> int:
        """Wait for the exit code; it is negative if a signal ended the process."""
        try:
            return self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(
                f"Process {self.pid} still ran after {timeout} s. Its output:\n{self.output()}"
            ) from None

    def output(self) -> str:
        return self._output.read_text(errors="replace")

    def close(self) -> None:
        """Kill the process and its descendants, orphans included."""
        if self.is_alive:
            self.sigkill()
        self._process.wait()
        for orphan in psutil.process_iter():
            if _mark_of(orphan) == self._mark:
                orphan.kill()
        if not self._keeps_output:
            self._output.unlink(missing_ok=True)

    def __enter__(self) -> Child:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            error.add_note(f"Output of process {self.pid}:\n{self.output()}")
        self.close()

    def _halt(self, number: signal.Signals) -> None:
        # Recorded before the signal: a replacement can only start later.
        self.halts.append(Halt(self.pid, time.monotonic()))
        self._process.send_signal(number)

    def _is_stopped(self) -> bool:
        return bool(psutil.Process(self.pid).status() == psutil.STATUS_STOPPED)


def wait_until(predicate: Callable[[], Answer], timeout: float, what: str) -> Answer:
    """Poll the predicate until it returns a true value, and return that value."""
    deadline = time.monotonic() + timeout
    while not (answer := predicate()):
        if time.monotonic() > deadline:
            raise _too_late(what, timeout, answer)
        time.sleep(INTERVAL)
    return answer


async def until(
    predicate: Callable[[], Answer | Awaitable[Answer]], timeout: float, what: str
) -> Answer:
    """The same in an event loop; the predicate may be a coroutine function."""
    deadline = time.monotonic() + timeout
    while True:
        result = predicate()
        answer: Answer = await result if isawaitable(result) else result
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise _too_late(what, timeout, answer)
        await asyncio.sleep(INTERVAL)


def _too_late(what: str, timeout: float, answer: object) -> AssertionError:
    return AssertionError(f"Timed out after {timeout} s: {what}. Last value: {answer!r}")


def _mark_of(process: psutil.Process) -> str | None:
    try:
        mark: str | None = process.environ().get(MARK)
        return mark
    except (psutil.Error, OSError):
        return None
