"""The example with pages: `python -m examples.export_users`, or `make trackers`.

Builds the pages, starts PostgreSQL, a worker and the site, and prints the address. Stays up until
Ctrl-C.
"""

import asyncio
import os
import secrets
import sys
from pathlib import Path

from examples.export_users.build import BuildFailed, build
from examples.serving import serving
from tools.node import PackagesMissing

CHECKOUT = Path(__file__).resolve().parents[2]
WORKER = ["worker", "examples.export_users.app:app", "--log-level", "off"]


class WorkerEnded(Exception):
    """The worker ended by itself."""


def main() -> int:
    from forge import ForgeError

    os.chdir(CHECKOUT)  # the data is in its .forge, where `forge` commands find it
    os.environ.setdefault("PYTHONPATH", str(CHECKOUT))  # so that the worker can import the example
    try:
        print("Building the pages …", flush=True)
        pages = build()
        asyncio.run(serve(pages))
    except (BuildFailed, PackagesMissing, WorkerEnded, ForgeError) as error:
        print(f"The example failed: {error}", file=sys.stderr)
        return 1
    return 0


async def serve(pages: Path) -> None:
    """Run a worker and the site until SIGINT or SIGTERM."""
    from examples.export_users.app import app
    from examples.export_users.web import make_site

    from forge.cli.processes.child_process import ForgeProcess, on_stop_signal

    stop = asyncio.Event()
    on_stop_signal(stop.set)
    print("Starting PostgreSQL, a worker and the site …", flush=True)
    async with app, serving(make_site(pages, secrets.token_urlsafe(32))) as address:
        await app.migrate()
        database = await (await app.session()).database()
        env = {"FORGE_DATABASE_URL": database.url, "FORGE_WORKER_METRICS_PORT": "off"}
        worker = await ForgeProcess.start(WORKER, env=env)
        ends = [asyncio.create_task(stop.wait()), asyncio.create_task(worker.ended())]
        print(f"\nSvelte: {address}/svelte.html\nReact:  {address}/react.html\n")
        print("It stays up until Ctrl-C.", flush=True)
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            worker.stop()
            await ends[1]
            ends[0].cancel()
    if not stop.is_set():
        raise WorkerEnded("the worker ended; its last lines say why")


if __name__ == "__main__":
    sys.exit(main())
