"""An app with an event loop of its own, in a thread that starts when it is first needed."""

import asyncio
import atexit
import os
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from weakref import WeakSet

from forge.core.errors import ForgeError

if TYPE_CHECKING:
    from forge.app import Forge

T = TypeVar("T")


class LoopThread:
    """Runs until it is stopped; as a daemon it never keeps a process from ending."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._stopping = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="forge-sync", daemon=True)
        self._thread.start()

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the loop and return its result."""
        if threading.current_thread() is self._thread:
            work.close()
            raise ForgeError("app.sync would wait for itself here; use the async app and `await`")
        future = asyncio.run_coroutine_threadsafe(work, self.loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()  # Ctrl-C ends the wait, and the result is no longer needed
            raise

    @contextmanager
    def entered(self, resource: AbstractAsyncContextManager[T]) -> Iterator[T]:
        """Enter a context on the loop and use its value in this thread."""
        value = self.wait(_enter(resource))
        try:
            yield value
        except BaseException as error:
            if not self.wait(_leave(resource, error)):
                raise
        else:
            self.wait(_leave(resource, None))

    def stop(self) -> None:
        """End the loop; what still runs on it is cancelled and waited for."""
        self.loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self.loop) as runner:
            runner.run(self._until_stopped())

    async def _until_stopped(self) -> None:
        await self._stopping.wait()


async def _enter(resource: AbstractAsyncContextManager[T]) -> T:
    return await resource.__aenter__()


async def _leave(
    resource: AbstractAsyncContextManager[Any], error: BaseException | None
) -> bool | None:
    if error is None:
        return await resource.__aexit__(None, None, None)
    return await resource.__aexit__(type(error), error, error.__traceback__)


class OpenedApp(NamedTuple):
    """An app whose connections belong to the loop of this thread."""

    app: "Forge"
    thread: LoopThread


class LoopApp:
    """Keeps one thread for all callers of this process."""

    def __init__(self, app: "Forge") -> None:
        self.app = app
        self._opening = threading.Lock()
        self._opened: OpenedApp | None = None
        _EVERY.add(self)

    @property
    def database_url(self) -> str | None:
        """The configured URL, or that of the embedded server while it runs for `app.sync`."""
        return (self.app.clone() if self._opened is None else self._opened.app).database_url

    def wait(self, ask: Callable[["Forge"], Coroutine[Any, Any, T]]) -> T:
        """Await a verb of the app on the loop, and return its result."""
        app, thread = self.open()
        return thread.wait(ask(app))

    def open(self) -> OpenedApp:
        """Return the app and its thread; refuse to block the caller's own event loop."""
        if _running_loop() is not None:
            raise ForgeError(
                "app.sync would block the event loop that runs here; write `await app.dispatch(…)` "
                "and the like, or call it from a thread with `await asyncio.to_thread(…)`"
            )
        with self._opening:
            if self._opened is None:
                self._opened = OpenedApp(self.app.clone(), LoopThread())
                self._opened.thread.wait(self._opened.app.schedules.plant_at_start())
            return self._opened

    def wake_later(self) -> None:
        """Wake workers for jobs that a caller's transaction will commit, if the app is open."""
        if (opened := self._opened) is not None:
            opened.thread.loop.call_soon_threadsafe(opened.app.dispatcher.wake_later)

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
_OF_THE_PARENT: list[OpenedApp] = []


def _forget_all() -> None:
    for app in list(_EVERY):
        app.forget()


def _close_all() -> None:
    for app in list(_EVERY):
        # An interpreter that shuts down starts no threads, and a dead database does not answer:
        # what is still open ends with the process.
        with suppress(ForgeError, RuntimeError, OSError):
            app.close()


atexit.register(_close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
