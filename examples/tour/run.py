"""The tour: starts PostgreSQL and two workers, dispatches jobs, and shows how they run.

`make run` runs it. In a terminal it also starts a server, prints a link that signs in to its
dashboard, and keeps a bakery busy until Ctrl-C; otherwise it ends when it is done.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parents[2]
STOP = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def main() -> int:
    # Set before the slow imports: Ctrl-C during them must not print a traceback.
    for number in STOP:
        signal.signal(number, lambda number, frame: sys.exit(0))
    os.environ.setdefault("FORGE_WORKER_BATCH_SIZE", "100")
    os.environ.setdefault("FORGE_WORKER_SHUTDOWN_GRACE", "2s")
    os.chdir(CHECKOUT)  # the data is in its .forge, where `forge` commands find it
    sys.path.insert(0, str(CHECKOUT))
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
    from examples.tour.app import app
    from examples.tour.processes import Processes
    from examples.tour.scenes import show_all
    from examples.tour.screen import Screen
    from examples.tour.traffic import keep_busy

    screen = Screen()
    screen.say("Starting PostgreSQL in .forge …" if app.is_embedded else "Using your database.")
    try:
        database = await (await app.session()).database()
        await app.migrate()
        async with Processes() as processes:
            await processes.start_workers(2)
            if not screen.is_terminal:
                await processes.while_running(show_all(database, screen))
                return
            dashboard = await processes.start_server()
            screen.say(f"The dashboard: {dashboard}\n")
            customers = asyncio.ensure_future(keep_busy())
            try:
                await processes.while_running(show_all(database, screen))
                screen.print_hints(dashboard, database.url if app.is_embedded else None)
                await processes.while_running(customers)
            finally:
                customers.cancel()
    finally:
        await app.close()


if __name__ == "__main__":
    sys.exit(main())
