"""The thread in which a borrowed connection is used."""

import asyncio
import sys
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor, Future
from typing import Any, TypeVar

from forge.store.borrowed import without_loop
from forge.store.borrowed.kinds import borrow

T = TypeVar("T")


def is_of_django(conn: Any) -> bool:
    """Whether it is a connection of Django: those belong to one thread, which Django finds."""
    # By its type: the attributes of a proxy are those of the current thread's connection.
    proxies = (
        sys.modules.get("django.utils.connection"),
        sys.modules.get("django.db.backends.base.base"),
    )
    names = ("ConnectionProxy", "BaseDatabaseWrapper")
    kinds = tuple(getattr(m, name) for m, name in zip(proxies, names, strict=True) if m)
    return isinstance(conn, kinds)


async def in_its_thread(conn: Any, act: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine that uses a borrowed connection where that may be used."""
    if not is_of_django(conn):
        return await act()
    from asgiref.sync import sync_to_async

    def run() -> T:
        return without_loop(conn, act())

    found: T = await sync_to_async(run, thread_sensitive=True)()
    return found


class DjangoThread(Executor):
    """Runs functions in the thread of Django's connections, one after the other."""

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> "Future[T]":
        from asgiref.sync import sync_to_async

        done: Future[T] = Future()

        async def run() -> None:
            try:
                done.set_result(await sync_to_async(fn, thread_sensitive=True)(*args, **kwargs))
            except BaseException as error:
                done.set_exception(error)

        self._running = asyncio.get_running_loop().create_task(run())
        return done


def waits_for_loop(conn: Any) -> bool:
    """Whether the connection is async: its calls await the event loop that opened it."""
    return not is_of_django(conn) and borrow(conn).waits
