"""`forge dev`: a worker and a server that start again whenever the code changes."""

import asyncio
import secrets
import socket
from pathlib import Path
from typing import TYPE_CHECKING

import click

from forge.cli.options import project_options

if TYPE_CHECKING:
    from forge.cli.reloader import Part
    from forge.config import Config

LOOPBACK = "127.0.0.1"


@click.command()
@click.argument("app_argument", metavar="[MODULE:APP]", required=False)
@click.option(
    "--watch",
    "folders",
    multiple=True,
    type=click.Path(path_type=Path, exists=True),
    help="Reload when something in this folder changes too; may be repeated.",
)
@click.option("--port", type=click.IntRange(0, 65_535), help="The server's port on loopback.")
@project_options
def dev(
    app_argument: str | None,
    app_option: str | None,
    config_path: Path | None,
    folders: tuple[Path, ...],
    port: int | None,
) -> int:
    """Run everything for development, and reload it when the code changes.

    Without a configured database it starts a PostgreSQL of its own in .forge.
    """
    from forge.cli.reloader import Part
    from forge.config import Config
    from forge.core.errors import ConfigError

    config = Config.load(config_path)
    reference = app_argument or app_option or config.app
    if reference is None:
        raise ConfigError(
            "no app is named; write `forge dev MODULE:APP`, such as shop.jobs:app, or "
            'app = "shop.jobs:app" at the top of forge.toml'
        )
    common = [] if config_path is None else ["--config", str(config_path)]
    parts = [
        Part(["worker", reference, "--migrate", "--processes", "1", *common]),
        *_server_part([reference, *common], config, port),
    ]
    return asyncio.run(_develop(parts, [Path.cwd(), *folders], config))


async def _develop(parts: "list[Part]", folders: list[Path], config: "Config") -> int:
    from forge.cli.offspring import obey
    from forge.cli.reloader import Reloader

    reloader = Reloader(parts, folders, config)
    obey(reloader.stop)
    await reloader.run()
    return 0


def _server_part(arguments: list[str], config: "Config", port: int | None) -> "list[Part]":
    """Return how to start the server, and print the link that logs in to it."""
    from forge.cli.reloader import Part
    from forge.cli.server import DEV_TOKEN
    from forge.cli.serving import address_of, see_that_it_can_serve
    from forge.cli.token import PREFIX
    from forge.core.errors import ConfigError

    try:
        see_that_it_can_serve()
    except ConfigError as error:
        click.echo(f"without a server: {error}", err=True)
        return []
    listener = _listen(config, port)
    token = PREFIX + secrets.token_urlsafe(32)
    click.echo(f"server: {address_of(listener)}/#token={token}", err=True)
    click.echo(
        "development only: programs on this machine may dispatch without a token, such as curl "
        f"with JSON to {address_of(listener)}/_api/jobs/TYPE/dispatch",
        err=True,
    )
    # The socket is this process's, so that requests wait while the server starts again.
    number = listener.detach()
    return [Part(["server", *arguments, "--socket", str(number)], [number], {DEV_TOKEN: token})]


def _listen(config: "Config", port: int | None) -> socket.socket:
    """Listen on loopback, whatever the settings say: a link that lets in is no protection."""
    from forge.cli.serving import CannotListen, listen

    is_chosen = port is not None or "port" in config.server.model_fields_set
    wanted = config.server.port if port is None else port
    try:
        return listen(LOOPBACK, wanted)
    except CannotListen:
        if is_chosen:
            raise
        click.echo(f"port {wanted} is taken; the server picks another", err=True)
        return listen(LOOPBACK, 0)
