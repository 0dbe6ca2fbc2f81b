"""The live screen of `forge top`: reads snapshots and keys, and draws after each."""

import asyncio
import os
import re
import signal
import sys
import termios
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from rich.console import Console
from rich.live import Live

from forge.cli.top.screen import draw
from forge.cli.top.snapshot import Snapshot, SnapshotReader
from forge.cli.top.view import View, pressed
from forge.core.errors import ForgeError

if TYPE_CHECKING:
    from forge.app import Forge

KEY = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1bO.|.", re.DOTALL)


async def watch(app: "Forge", console: Console, view: View, interval: float) -> None:
    """Show the screen until a key or a signal ends it."""
    reader = SnapshotReader(app)
    first = await reader.read(view.last)  # an error is printed, not shown in the screen
    with Live(console=console, screen=True, auto_refresh=False) as live:
        await LiveScreen(reader, live, view, first).run(interval)


class LiveScreen:
    """The screen, what it shows, and what changes it."""

    def __init__(self, reader: SnapshotReader, live: Live, view: View, first: Snapshot) -> None:
        self._reader = reader
        self._live = live
        self._view = view
        self._shown = first
        self._error: str | None = None
        self._is_interrupted = False
        self._changed = asyncio.Event()
        self._range_changed = asyncio.Event()

    async def run(self, interval: float) -> None:
        """Draw after each change until it is over."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGWINCH, self._changed.set)
        loop.add_signal_handler(signal.SIGTERM, self._stop)
        # Not by cancelling this task, as asyncio does: a cancellation can be lost while it draws.
        loop.add_signal_handler(signal.SIGINT, self._interrupt)
        reading = asyncio.create_task(self._read_again(interval))
        reading.add_done_callback(lambda _: self._changed.set())
        try:
            with keys(self._press):
                while not self._view.is_over and not reading.done():
                    self._draw()
                    await self._changed.wait()
                    self._changed.clear()
        finally:
            reading.cancel()
        await asyncio.wait([reading])
        if not reading.cancelled():
            reading.result()
        if self._is_interrupted:
            raise KeyboardInterrupt

    def _draw(self) -> None:
        size = self._live.console.size
        drawn = draw(self._shown, self._view, size.width, size.height, self._error)
        self._live.update(drawn, refresh=True)

    def _press(self, key: str) -> None:
        before = self._view
        self._view = pressed(before, key)
        if self._view.last != before.last:
            self._range_changed.set()
        self._changed.set()

    def _stop(self) -> None:
        self._view = replace(self._view, is_over=True)
        self._changed.set()

    def _interrupt(self) -> None:
        self._is_interrupted = True
        self._stop()

    async def _read_again(self, interval: float) -> None:
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._range_changed.wait(), interval)
            self._range_changed.clear()
            try:
                snapshot = await self._reader.read(self._view.last)
            except (ForgeError, OSError) as error:
                self._error = str(error)
            else:
                self._error = None
                if not self._view.is_held:
                    self._shown = snapshot
            self._changed.set()


@contextmanager
def keys(press: Callable[[str], None]) -> Iterator[None]:
    """Call a function with each key, without waiting for Enter, and restore the terminal."""
    if not sys.stdin.isatty():
        yield
        return
    loop, stdin = asyncio.get_running_loop(), sys.stdin.fileno()
    before = termios.tcgetattr(stdin)

    def read() -> None:
        typed = os.read(stdin, 1024).decode(errors="ignore")
        if not typed:  # the terminal is gone
            loop.remove_reader(stdin)
        for key in KEY.findall(typed):
            if len(key) == 1:  # not an arrow or another key of several characters
                press(key)

    tty.setcbreak(stdin)
    loop.add_reader(stdin, read)
    try:
        yield
    finally:
        loop.remove_reader(stdin)
        termios.tcsetattr(stdin, termios.TCSADRAIN, before)
