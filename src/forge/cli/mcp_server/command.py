"""`forge mcp`: tools for assistants, over stdin and stdout, until stdin ends."""

import asyncio
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from forge.cli.options import project_options

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from forge.cli.mcp_server.api import Api


@click.command()
@click.option(
    "--url",
    help="Address of a running server; default: the API in this process, on the database of the "
    "settings.",
)
@click.option(
    "--token",
    envvar="FORGE_TOKEN",
    help="Token whose roles and tenant apply; better in FORGE_TOKEN, which other users do not see.",
)
@click.option(
    "--allow-write", is_flag=True, help="Also offer the tools that change something. Default: no."
)
@project_options
def mcp(
    app_option: str | None,
    config_path: Path | None,
    url: str | None,
    token: str | None,
    allow_write: bool,
) -> None:
    """Offer jobs, findings and dead letters to an assistant, by the Model Context Protocol.

    Started by an editor or an assistant, not by hand: it speaks the protocol on stdin and stdout.
    """
    from forge.cli.processes.worker import set_up_logging

    token = _required(token)
    _require_packages("mcp", *(() if url else ("fastapi", "jwt")))
    set_up_logging(None, "warning")
    # At once: the thread that reads stdin cannot be interrupted.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from forge.cli.mcp_server.api import api_at, api_of

    if url is not None:
        asyncio.run(_serve(api_at(url, token), allow_write=allow_write))
        return
    from forge.cli.project import find_database, run

    with _stdout_on_stderr():
        app = find_database(app_option, config_path)
    run(app, lambda app: _serve(api_of(app, token), allow_write=allow_write))


async def _serve(opening: "AbstractAsyncContextManager[Api]", *, allow_write: bool) -> None:
    async with opening as api:
        # After an address that is none has been refused: this import is slow.
        from forge.cli.mcp_server.server import serve

        await serve(api, allow_write=allow_write)


def _required(token: str | None) -> str:
    from forge.core.errors import ConfigError

    if token and token.strip():
        return token.strip()
    raise ConfigError(
        "no token; set FORGE_TOKEN, or create a token that only reads with `forge token create "
        "--name assistant --role viewer --role staff --role manager` and add it to forge.toml"
    )


def _require_packages(*names: str) -> None:
    from forge.core.errors import ConfigError

    if missing := [name for name in names if find_spec(name) is None]:
        raise ConfigError(
            f"forge mcp needs {', '.join(missing)}; run `pip install 'forge-jobs[mcp]'`"
        )


@contextmanager
def _stdout_on_stderr() -> Iterator[None]:
    """Send what an imported app prints to stderr: stdout belongs to the protocol."""
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)
