"""Handlers that fork the worker's own process on its event loop: the copy is kept harmless.

A forked copy shares the worker's connections and the kernel's queue of its event loop. If the
handler returned in it, or awaited something, it would answer in the worker's name, and both would
read each other's data until neither works. The copy may run the handler's own code to its end, as
`multiprocessing` does; where it comes back to the event loop it ends.
"""

import asyncio
import os
import socket
import stat
import sys
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from weakref import WeakSet

# The modules that fork in order to run another program.
SPAWNING = frozenset({"asyncio.subprocess", "subprocess"})
# The exit code of a copy that came back to the event loop.
CAME_BACK = 70

_watches: "WeakSet[ForkWatch]" = WeakSet()
_is_copy = False


class ForkWatch:
    """Watches for forks in the thread that made it, which runs a worker's event loop."""

    def __init__(self, forked: Callable[[], None]) -> None:
        global _is_copy
        _is_copy = False  # a copy may run a worker of its own
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._forked = forked
        _watches.add(self)

    def close(self) -> None:
        _watches.discard(self)

    @property
    def is_concerned(self) -> bool:
        return threading.get_ident() == self._thread and self._loop.is_running()

    def in_worker(self) -> None:
        self._loop.call_soon(self._forked)

    def in_copy(self) -> None:
        """End at the next turn of the loop, before anything else that waits for it."""
        handle = self._loop.call_soon(os._exit, CAME_BACK)
        ready = getattr(self._loop, "_ready", None)
        if isinstance(ready, deque):  # asyncio's own loop; uvloop runs what was ready before
            count = len(ready)
            ready.clear()
            ready.extend([handle] * count)


def leave_if_copied() -> None:
    """End a copy whose handler has returned; its outcome is the worker's to write."""
    if _is_copy:
        os._exit(CAME_BACK)


def _in_copy() -> None:
    global _is_copy
    if _is_spawn():
        return
    concerned = [watch for watch in _watches if watch.is_concerned]
    _is_copy = _is_copy or bool(_watches)
    for watch in concerned:
        watch.in_copy()
    if concerned:
        _disconnect()
    _watches.clear()  # they are the worker's


def _in_worker() -> None:
    if _is_spawn():
        return
    for watch in list(_watches):
        if watch.is_concerned:
            watch.in_worker()


def _is_spawn() -> bool:
    """Whether the fork only starts another program, as uvloop and Popen with preexec_fn do."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_globals.get("__name__") in SPAWNING:
            return True
        frame = frame.f_back
    return False


def _disconnect() -> None:
    """Replace every connected socket by /dev/null: two processes cannot share one."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for name in os.listdir("/dev/fd"):
        with suppress(OSError):
            if _is_connected(int(name)):
                os.dup2(nothing, int(name), inheritable=False)
    os.close(nothing)


def _is_connected(descriptor: int) -> bool:
    """Whether it is a connection to a server; pairs of sockets between processes have no name."""
    if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
        return False
    with socket.socket(fileno=os.dup(descriptor)) as copy:
        return copy.type == socket.SOCK_STREAM and bool(copy.getpeername())


os.register_at_fork(after_in_parent=_in_worker, after_in_child=_in_copy)
