"""An app with an event loop of its own: opened when first used, anew after a fork, shut at exit."""

import asyncio
import atexit
import os
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from weakref import WeakSet

from forge.core.errors import ForgeError
from forge.loop_thread import LoopThread

if TYPE_CHECKING:
    from forge.app import Forge

T = TypeVar("T")


class Opened(NamedTuple):
    """An app whose connections belong to the loop of this thread."""

    app: "Forge"
    thread: LoopThread


class LoopApp:
    """Keeps one thread for all callers of this process."""

    def __init__(self, app: "Forge") -> None:
        self._app = app
        self._opening = threading.Lock()
        self._opened: Opened | None = None
        _EVERY.add(self)

    @property
    def database_url(self) -> str | None:
        """The configured URL, or that of the embedded server while the twin is open."""
        return (self._app._twin() if self._opened is None else self._opened.app).database_url

    def wait(self, ask: Callable[["Forge"], Coroutine[Any, Any, T]]) -> T:
        """Ask the app for something and wait for it."""
        app, thread = self.open()
        return thread.wait(ask(app))

    def open(self) -> Opened:
        """Return the app and its thread; refuse a caller whose own event loop would stand still."""
        if _running_loop() is not None:
            raise ForgeError(
                "app.sync would block the event loop that runs here; write `await app.dispatch(…)` "
                "and the like, or call it from a thread with `await asyncio.to_thread(…)`"
            )
        with self._opening:
            if self._opened is None:
                self._opened = Opened(self._app._twin(), LoopThread())
                self._opened.thread.wait(self._opened.app.schedules.plant_at_start())
            return self._opened

    def wake_later(self) -> None:
        """Tell idle workers about what a caller's transaction will bring, if anything is open."""
        if (opened := self._opened) is not None:
            opened.thread.loop.call_soon_threadsafe(opened.app._wake_later)

    def close(self) -> None:
        with self._opening:
            opened, self._opened = self._opened, None
        if opened is not None:
            try:
                opened.thread.wait(opened.app.close())
            finally:
                opened.thread.stop()

    def forget(self) -> None:
        """After a fork the loop, its thread and its connections are the parent's alone."""
        self._opening = threading.Lock()
        if self._opened is not None:
            # To close or to collect them would reach into the parent's sockets: they stay.
            _OF_THE_PARENT.append(self._opened)
            self._opened = None


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


_EVERY: WeakSet[LoopApp] = WeakSet()
_OF_THE_PARENT: list[Opened] = []


def _forget_all() -> None:
    for app in list(_EVERY):
        app.forget()


def _close_all() -> None:
    for app in list(_EVERY):
        # A dying interpreter starts no threads any more, and a dead database does not answer:
        # what is left open ends with the process.
        with suppress(ForgeError, RuntimeError, OSError):
            app.close()


atexit.register(_close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
