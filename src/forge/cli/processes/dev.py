"""`forge dev`: a worker and a server that restart when the code changes."""

import asyncio
import secrets
import socket
from pathlib import Path
from typing import TYPE_CHECKING

import click

from forge.cli.options import project_options

if TYPE_CHECKING:
    from forge.cli.processes.reloader import ChildCommand
    from forge.config.settings import Config

LOOPBACK = "127.0.0.1"


@click.command()
@click.argument("app_argument", metavar="[MODULE:APP]", required=False)
@click.option(
    "--watch",
    "folders",
    multiple=True,
    type=click.Path(path_type=Path, exists=True),
    help="Also watch this folder; may be repeated.",
)
@click.option("--port", type=click.IntRange(0, 65_535), help="Port of the server on loopback.")
@project_options
def dev(
    app_argument: str | None,
    app_option: str | None,
    config_path: Path | None,
    folders: tuple[Path, ...],
    port: int | None,
) -> int:
    """Run a worker and a server for development, and reload them when the code changes.

    Without a configured database it starts its own PostgreSQL in .forge.
    """
    from forge.cli.processes.reloader import ChildCommand
    from forge.config.settings import Config
    from forge.core.errors import ConfigError

    config = Config.load(config_path)
    reference = app_argument or app_option or config.app
    if reference is None:
        raise ConfigError(
            "no app given; run `forge dev MODULE:APP`, such as shop.jobs:app, or write "
            'app = "shop.jobs:app" at the top of forge.toml'
        )
    common = [] if config_path is None else ["--config", str(config_path)]
    parts = [
        ChildCommand(["worker", reference, "--migrate", "--processes", "1", *common]),
        *_server_part([reference, *common], config, port),
    ]
    return asyncio.run(_develop(parts, [Path.cwd(), *folders], config))


async def _develop(parts: "list[ChildCommand]", folders: list[Path], config: "Config") -> int:
    from forge.cli.processes.child_process import on_stop_signal
    from forge.cli.processes.reloader import Reloader

    reloader = Reloader(parts, folders, config)
    on_stop_signal(reloader.stop)
    await reloader.run()
    return 0


def _server_part(arguments: list[str], config: "Config", port: int | None) -> "list[ChildCommand]":
    """Return the command of the server, and print a URL that signs in to it."""
    from forge.cli.processes.reloader import ChildCommand
    from forge.cli.processes.server import DEV_TOKEN
    from forge.cli.processes.serving import address_of, require_server_extra
    from forge.cli.tokens import PREFIX
    from forge.core.errors import ConfigError

    try:
        require_server_extra()
    except ConfigError as error:
        click.echo(f"no server: {error}", err=True)
        return []
    listener = _listen(config, port)
    token = PREFIX + secrets.token_urlsafe(32)
    click.echo(f"server: {address_of(listener)}/#token={token}", err=True)
    click.echo(
        "development only: programs on this machine can dispatch without a token, such as curl "
        f"with JSON to {address_of(listener)}/_api/jobs/TYPE/dispatch",
        err=True,
    )
    # This process owns the socket, so requests wait while the server restarts.
    number = listener.detach()
    return [
        ChildCommand(["server", *arguments, "--socket", str(number)], [number], {DEV_TOKEN: token})
    ]


def _listen(config: "Config", port: int | None) -> socket.socket:
    """Listen on loopback only, whatever the settings: the printed URL contains the token."""
    from forge.cli.processes.serving import CannotListen, listen

    is_chosen = port is not None or "port" in config.server.model_fields_set
    preferred = config.server.port if port is None else port
    try:
        return listen(LOOPBACK, preferred)
    except CannotListen:
        if is_chosen:
            raise
        click.echo(f"port {preferred} is in use; the server uses another one", err=True)
        return listen(LOOPBACK, 0)
