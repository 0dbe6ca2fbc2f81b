"""The tour: starts PostgreSQL and a worker, and shows jobs being dispatched, run and finished.

`make run` runs it. In a terminal it stays up until Ctrl-C; elsewhere it ends when it is done.
"""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parents[2]
STOP = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
WORKER = ["worker", "examples.tour.app:app", "--max-concurrent", "100", "--log-level", "error"]


def main() -> int:
    # From the first moment on: Ctrl-C while Python still imports is no reason for a trace.
    for number in STOP:
        signal.signal(number, lambda number, frame: sys.exit(0))
    os.environ.setdefault("FORGE_WORKER_BATCH_SIZE", "100")
    os.chdir(CHECKOUT)  # the data lies in its .forge, and its `forge` commands find it there
    from forge import ForgeError

    try:
        asyncio.run(until_stopped(tour()))
    except ForgeError as error:
        print(f"the tour cannot go on: {error}", file=sys.stderr)
        return 1
    return 0


async def until_stopped(work: Coroutine[Any, Any, None]) -> None:
    """Let a signal end the work in good order: what it has opened is closed."""
    task = asyncio.ensure_future(work)
    for number in STOP:
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    try:
        await task
    except asyncio.CancelledError:
        print("stopped")


async def tour() -> None:
    from app import app
    from scenes import show_all
    from screen import Screen

    screen = Screen()
    screen.say("Starting PostgreSQL in .forge …" if app.is_embedded else "Using your database.")
    try:
        database = await (await app.session()).database()
        await app.migrate()
        async with worker_process() as ended:
            await unless(ended, show_all(database, screen))
            if screen.is_terminal:
                screen.say_how_to_look_around(database.url if app.is_embedded else None)
                await ended
    finally:
        await app.close()


@asynccontextmanager
async def worker_process() -> AsyncIterator["asyncio.Future[int]"]:
    """Run what `forge worker examples.tour.app:app` runs, and stop it in the end."""
    from forge.cli.offspring import ForgeProcess

    worker = await ForgeProcess.start(WORKER)
    ended = asyncio.ensure_future(worker.ended())
    try:
        yield ended
    finally:
        worker.stop()
        await ended


async def unless(ended: "asyncio.Future[int]", work: Coroutine[Any, Any, None]) -> None:
    """Do the work, but do not wait for ever when the worker is gone."""
    from forge import ForgeError

    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait({task, ended}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ForgeError(f"the worker ended with exit code {ended.result()}; see above why")
        await task
    finally:
        task.cancel()


if __name__ == "__main__":
    sys.exit(main())
