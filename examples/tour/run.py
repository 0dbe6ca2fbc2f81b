"""The tour: starts PostgreSQL and a worker, dispatches jobs, and shows how they run.

`make run` runs it. In a terminal it stays up until Ctrl-C; otherwise it ends when it is done.
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
    # Set before the slow imports: Ctrl-C during them must not print a traceback.
    for number in STOP:
        signal.signal(number, lambda number, frame: sys.exit(0))
    os.environ.setdefault("FORGE_WORKER_BATCH_SIZE", "100")
    os.chdir(CHECKOUT)  # the data is in its .forge, where `forge` commands find it
    from forge import ForgeError

    try:
        asyncio.run(until_stopped(tour()))
    except ForgeError as error:
        print(f"The tour failed: {error}", file=sys.stderr)
        return 1
    return 0


async def until_stopped(work: Coroutine[Any, Any, None]) -> None:
    """Run until done or until a signal cancels the work, so that it closes its resources."""
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
            await while_running(ended, show_all(database, screen))
            if screen.is_terminal:
                screen.print_hints(database.url if app.is_embedded else None)
                await ended
    finally:
        await app.close()


@asynccontextmanager
async def worker_process() -> AsyncIterator["asyncio.Future[int]"]:
    """Run `forge worker examples.tour.app:app` and stop it at the end of the block."""
    from forge.cli.processes.child_process import ForgeProcess

    worker = await ForgeProcess.start(WORKER)
    ended = asyncio.ensure_future(worker.ended())
    try:
        yield ended
    finally:
        worker.stop()
        await ended


async def while_running(ended: "asyncio.Future[int]", work: Coroutine[Any, Any, None]) -> None:
    """Do the work, but raise an error if the worker ends first."""
    from forge import ForgeError

    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait({task, ended}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ForgeError(f"The worker exited with code {ended.result()}. See its output above.")
        await task
    finally:
        task.cancel()


if __name__ == "__main__":
    sys.exit(main())
