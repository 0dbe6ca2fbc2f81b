"""An event loop in a thread of its own, for callers that have none or must not use theirs."""

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Any, TypeVar

from forge.core.errors import ForgeError

T = TypeVar("T")


class LoopThread:
    """Runs until it is stopped; as a daemon it never keeps a process from ending."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._stopping = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="forge-sync", daemon=True)
        self._thread.start()

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Carry out work on the loop and return what comes of it."""
        if threading.current_thread() is self._thread:
            work.close()
            raise ForgeError("app.sync would wait for itself here; use the async app and `await`")
        future = asyncio.run_coroutine_threadsafe(work, self.loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()  # Ctrl-C ends the wait, and nobody is left who wants the work
            raise

    @contextmanager
    def entered(self, resource: AbstractAsyncContextManager[T]) -> Iterator[T]:
        """Hold open on the loop what is used from here."""
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
