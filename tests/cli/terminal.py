"""Runs a command in a pseudo-terminal."""

import os
import pty
import signal
import subprocess
import termios
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path


class Terminal:
    """The output of the terminal, and the keys to press."""

    def __init__(
        self, command: Sequence[str | Path], env: Mapping[str, str], cwd: Path | None
    ) -> None:
        self._screen, theirs = pty.openpty()
        self.process = subprocess.Popen(
            command,
            env=env,
            cwd=cwd,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        self._shown = b""
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()

    @property
    def shown(self) -> str:
        return self._shown.decode(errors="replace")

    def press(self, keys: str) -> None:
        """Press keys."""
        os.write(self._screen, keys.encode())

    def resize(self, columns: int, lines: int) -> None:
        """Change the size of the terminal, as dragging the corner of its window does."""
        termios.tcsetwinsize(self._screen, (lines, columns))
        os.killpg(self.process.pid, signal.SIGWINCH)

    def ctrl_c(self) -> None:
        """Press Ctrl-C: interrupt every process of the foreground group."""
        os.killpg(self.process.pid, signal.SIGINT)

    def wait(self, seconds: float) -> int:
        return self.process.wait(seconds)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(60)
        self._reading.join(10)
        os.close(self._screen)

    def _read(self) -> None:
        # Linux answers with an error once the other end is closed.
        with suppress(OSError):
            while read := os.read(self._screen, 65_536):
                self._shown += read


@contextmanager
def terminal(
    command: Sequence[str | Path], env: Mapping[str, str], cwd: Path | None = None
) -> Iterator[Terminal]:
    """Run a command in a terminal."""
    opened = Terminal(command, env, cwd)
    try:
        yield opened
    finally:
        opened.close()
