"""A demonstration of the feeds application: `python -m examples.feeds`, or `make feeds`.

Starts PostgreSQL, a site with feeds and a hub, the application's web server and a worker, and
shows how they work. In a terminal it stays up until Ctrl-C; otherwise it ends when it is done.
"""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from examples.feeds.local_site import Site
from examples.feeds.scenes import leave_all, say, show_all
from examples.serving import serving

SCHEMA = Path(__file__).with_name("schema.sql")
# The length of a minute in the demonstration, so that an hour passes quickly.
MINUTE = "20ms"
HINTS = """
The worker stays up until Ctrl-C. From another terminal, in this folder:

  .venv/bin/forge schedules list
  .venv/bin/forge schedules show renew_websub
"""


def main() -> int:
    from forge import ForgeError

    os.environ.setdefault("FEEDS_MINUTE", MINUTE)
    reasons: list[Exception] = []
    try:
        with suppress(KeyboardInterrupt):
            asyncio.run(show())
    except* (ForgeError, RuntimeError) as failed:
        reasons += failed.exceptions
    for reason in reasons:
        print(f"The demonstration failed: {reason}", file=sys.stderr)
    return 1 if reasons else 0


async def show() -> None:
    from examples.feeds.app import app

    say("Starting PostgreSQL, a site with feeds, the web server and a worker …")
    say(f"A minute lasts {os.environ['FEEDS_MINUTE']} here, so that hours pass quickly.")
    site = Site(log=say)
    async with app, serving(site.asgi) as site.address, running(app) as db:
        await show_all(db, site)
        if sys.stdout.isatty():
            say(HINTS)
            await asyncio.Event().wait()


@asynccontextmanager
async def running(app: Any) -> AsyncIterator[Any]:
    """Run the web server and the worker in this loop. Yields a pool for the application's tables.

    In production, run them as separate processes.
    """
    from examples.feeds.web import web

    from forge import Worker

    await app.migrate()
    db = await (await (await app.session()).database()).users()
    await db.execute(SCHEMA.read_text())
    await leave_all(db)
    worker = Worker(app)
    async with serving(web) as os.environ["FEEDS_PUBLIC_URL"], asyncio.TaskGroup() as parts:
        parts.create_task(worker.run())
        await worker.started.wait()
        try:
            yield db
        finally:
            await leave_all(db)
            worker.drain()


if __name__ == "__main__":
    sys.exit(main())
