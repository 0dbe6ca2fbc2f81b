"""`forge server`: the HTTP API, until it is told to stop."""

import os
import signal
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from forge.cli.log_output import LEVELS, set_up_logging
from forge.cli.options import project_options

if TYPE_CHECKING:
    from forge.config import Config

# How `forge dev` tells the server that it starts which token is the developer's.
DEV_TOKEN = "FORGE_DEV_TOKEN"


@click.command()
@click.argument("app_argument", metavar="[MODULE:APP]", required=False)
@click.option("--host", help="The address to listen on.")
@click.option("--port", type=click.IntRange(0, 65_535), help="The port; 0 picks a free one.")
@click.option("--access-log", is_flag=True, help="Log each request.")
@click.option("--log-format", type=click.Choice(["text", "json"]), help="How log lines look.")
@click.option(
    "--log-level", type=click.Choice(LEVELS), default="info", show_default=True, help="How much."
)
@click.option("--socket", "inherited", type=int, hidden=True)
@click.option("--lifeline", type=int, hidden=True)
@project_options
def server(
    app_argument: str | None,
    app_option: str | None,
    config_path: Path | None,
    host: str | None,
    port: int | None,
    access_log: bool,
    log_format: str | None,
    log_level: str,
    inherited: int | None,
    lifeline: int | None,
) -> int:
    """Serve the HTTP API.

    The first SIGTERM or Ctrl-C lets requests end, for ten seconds at most; the second does not.
    """
    from forge.cli.project import find_app, run
    from forge.cli.serving import listen, see_that_it_can_serve, serve

    # Told to stop while it still imports the app: nothing has begun, so that it just ends.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(0))
    see_that_it_can_serve()
    app = find_app(app_argument or app_option, config_path)
    settings = app.config.server
    app.database_url = settings.database_url or app.database_url
    set_up_logging(log_format, log_level)
    if inherited is not None:
        listener = socket.socket(fileno=inherited)
        app.config = _for_development(app.config)
    else:
        see_that_it_is_not_open(app.config)
        given = port if port is not None else settings.port
        listener = listen(host or settings.host, given)
    run(
        app,
        lambda app: serve(
            app,
            listener,
            lifeline=lifeline,
            access_log=access_log,
            is_development=inherited is not None,
        ),
    )
    return 0


def see_that_it_is_not_open(config: "Config") -> None:
    """Raise unless callers have to show who they are."""
    from forge.core.errors import ConfigError

    if not config.auth.is_configured:
        raise ConfigError(
            "the server does not start without authentication; make a token with `forge token "
            "create --name ME` and write what it prints into forge.toml, or set up [auth.jwt]"
        )
    if config.auth.secret is None:
        raise ConfigError(
            "[auth] secret is missing, with which the server signs watch tokens; make one with "
            "`python -c 'import secrets; print(secrets.token_urlsafe(32))'` and write it into "
            "forge.toml or FORGE_AUTH_SECRET"
        )


def _for_development(config: "Config") -> "Config":
    """Let the developer in, whose token `forge dev` made for this run."""
    from forge.cli.token import ROLES, hash_of
    from forge.config_server import TokenConfig

    made = os.environ[DEV_TOKEN]
    developer = TokenConfig(name="developer", sha256=hash_of(made), roles=tuple(ROLES))
    auth = config.auth.model_copy(
        update={
            "tokens": (*config.auth.tokens, developer),
            # Watch tokens outlive a reload.
            "secret": config.auth.secret or made,
        }
    )
    return type(config)(**{**config.__dict__, "auth": auth})
