"""A demonstration with two firms: `python -m examples.firm`, or `make firm`.

Starts PostgreSQL, a mail and calendar provider, the API and a worker, and shows a day at a law
firm and at an accounting firm. In a terminal it stays up until Ctrl-C; otherwise it ends when it
is done.
"""

import asyncio
import secrets
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from examples.firm.local_provider import Provider
from examples.firm.output import say
from examples.firm.people import MAX, tokens
from examples.firm.scenes import show_all
from examples.serving import serving

SCHEMA = Path(__file__).with_name("schema.sql")
WORKER = ["worker", "examples.firm.app:app", "--log-level", "off"]
HINTS = """
The API and the worker stay up until Ctrl-C. Max can use this command:

  curl -H 'Authorization: Bearer {token}' {api}/api/jobs/admin/dlq/
"""


def main() -> int:
    from forge import ForgeError

    try:
        with suppress(KeyboardInterrupt):
            asyncio.run(show())
    except (ForgeError, RuntimeError) as error:
        print(f"The demonstration failed: {error}", file=sys.stderr)
        return 1
    return 0


async def show() -> None:
    import httpx
    from examples.firm.api_client import ApiClients
    from examples.firm.app import app

    say("Starting PostgreSQL, a provider, the API and a worker …\n")
    provider = Provider(log=say)
    async with (
        app,
        serving(provider.asgi) as provider.address,
        running(app) as (db, api),
        httpx.AsyncClient(base_url=api, timeout=30) as http,
    ):
        await show_all(db, provider, ApiClients.at(http))
        if sys.stdout.isatty():
            say(HINTS.format(token=MAX.token, api=api))
            await asyncio.Event().wait()


@asynccontextmanager
async def running(app: Any) -> AsyncIterator[tuple[Any, str]]:
    """Run the API in this process and a worker in another. Yields a pool and the API's address.

    In production, run `forge server` and `forge worker` with the same forge.toml.
    """
    from forge import Config
    from forge.cli.processes.child_process import ForgeProcess
    from forge.http import create_app

    known = Config(auth={"secret": secrets.token_urlsafe(32), "tokens": tokens()}).auth
    app.config = app.config.model_copy(update={"auth": known})
    await app.migrate()
    database = await (await app.session()).database()
    db = await database.users()
    await db.execute(SCHEMA.read_text())
    env = {"FORGE_DATABASE_URL": database.url, "FORGE_WORKER_METRICS_PORT": "off"}
    worker = await ForgeProcess.start(WORKER, env=env)
    try:
        async with serving(create_app(app)) as api:
            yield db, api
    finally:
        worker.stop()
        await worker.ended()


if __name__ == "__main__":
    sys.exit(main())
