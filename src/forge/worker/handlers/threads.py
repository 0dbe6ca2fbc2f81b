"""Handlers that are plain functions: each in a thread, asked to stop by an exception in it."""

import asyncio
import ctypes
import threading
from collections.abc import Callable
from concurrent.futures import Executor
from contextvars import copy_context
from typing import Any

from forge.core.errors import Cancelled, TimedOut
from forge.worker.attempts import Attempt, Stop
from forge.worker.handlers.django_connections import close_stale_connections
from forge.worker.handlers.forks import leave_if_copied

EXCEPTIONS: dict[Stop, type[Exception]] = {
    Stop.TIMEOUT: TimedOut,
    Stop.CANCELLED: Cancelled,
    Stop.RELEASED: Cancelled,
    Stop.CUT_OFF: Cancelled,
}


async def run_in_thread(pool: Executor, attempt: Attempt, call: Callable[[], Any]) -> Any:
    """Run a plain function; the slot stays taken until its thread has really ended."""
    thread = _Thread()
    attempt.interrupt_by(thread.interrupt)
    loop = asyncio.get_running_loop()
    future = loop.run_in_executor(pool, copy_context().run, thread.run, call)
    if attempt.stop is not None:
        thread.interrupt(attempt.stop)
    try:
        return await asyncio.shield(future)
    finally:
        attempt.interrupt_by_cancelling()  # what a middleware still does can be cancelled


class _Thread:
    """Injects an exception only while the handler itself is running, never into what follows."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ident: int | None = None
        self._asked: Stop | None = None

    def run(self, call: Callable[[], Any]) -> Any:
        close_stale_connections()
        with self._lock:
            if self._asked is not None:
                raise EXCEPTIONS[self._asked]("asked to stop before it began")
            self._ident = threading.get_ident()
        try:
            return call()
        except StopIteration as error:
            # No future can carry it: the await of the handler would never return.
            raise RuntimeError("the handler raised StopIteration") from error
        finally:
            leave_if_copied()
            self._leave()
            close_stale_connections()

    def interrupt(self, why: Stop) -> None:
        with self._lock:
            self._asked = why
            if self._ident is not None:
                _inject(self._ident, EXCEPTIONS[why])

    def _leave(self) -> None:
        """Close the door, and let an exception arrive here that is still on its way."""
        has_arrived = False
        while not has_arrived:
            try:
                with self._lock:
                    self._ident = None
                if self._asked is None:
                    return
                # It replaces an exception that has not arrived. Withdrawing that one instead would
                # make the interpreter check for it forever, which slows down all code and hangs
                # what is traced, by a debugger for example.
                _inject(threading.get_ident(), Cancelled)
                while True:
                    pass
            except (TimedOut, Cancelled):
                has_arrived = self._ident is None


def _inject(ident: int, exception: type[Exception]) -> None:
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(ident), ctypes.py_object(exception))
