"""A process that is PID 1 of its own PID namespace, as in a container."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import psutil
import pytest

from tests.faults.kit.process import Child, wait_until

UNSHARE = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")


def require_containers() -> None:
    """Skip the test if this machine does not allow PID namespaces."""
    if (fault := _fault()) is not None:
        pytest.skip(f"unshare cannot create a PID namespace here: {fault}")


class Container(Child):
    """A PID namespace; signals go to its PID 1, and it ends when PID 1 ends."""

    def __init__(
        self, args: Sequence[str | Path], env: Mapping[str, str], *, cwd: Path | None = None
    ) -> None:
        super().__init__([*UNSHARE, *args], env, output=None, cwd=cwd)
        wait_until(self._children, 10, "unshare has started PID 1")
        (self.init,) = self._children()

    def send(self, number: signal.Signals) -> None:
        """Send a signal to PID 1."""
        os.kill(self.init.pid, number)

    def sigterm(self) -> None:
        self.send(signal.SIGTERM)

    def sigkill(self) -> None:
        """Kill PID 1, and with it everything in the namespace."""
        self.send(signal.SIGKILL)

    def zombies(self) -> list[int]:
        """Processes that have ended and that PID 1 has not reaped."""
        found = self.init.children()
        return [child.pid for child in found if _status(child) == psutil.STATUS_ZOMBIE]

    def _children(self) -> list[psutil.Process]:
        return psutil.Process(self.pid).children()


@cache
def _fault() -> str | None:
    try:
        tried = subprocess.run([*UNSHARE, "true"], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return "install util-linux"
    return None if tried.returncode == 0 else tried.stderr.strip()


def _status(process: psutil.Process) -> str | None:
    try:
        return str(process.status())
    except psutil.NoSuchProcess:
        return None
