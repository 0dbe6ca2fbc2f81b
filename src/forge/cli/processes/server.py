"""`forge server`: serves the HTTP API until SIGTERM or Ctrl-C."""

import os
import signal
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from forge.cli.options import project_options
from forge.cli.processes.worker import log_options, set_up_logging

if TYPE_CHECKING:
    from forge.config.settings import Config

# Environment variable in which `forge dev` passes the developer's token to the server.
DEV_TOKEN = "FORGE_DEV_TOKEN"


@click.command()
@click.argument("app_argument", metavar="[MODULE:APP]", required=False)
@click.option("--host", help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65_535), help="Port; 0 picks a free one.")
@click.option("--access-log", is_flag=True, help="Log every request.")
@log_options
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

    The first SIGTERM or Ctrl-C lets requests finish for up to ten seconds; the second ends them.
    """
    from forge.cli.processes.serving import listen, require_server_extra, serve
    from forge.cli.project import find_app, run

    # A signal while the app is being imported: nothing has started, so exit cleanly.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(0))
    require_server_extra()
    app = find_app(app_argument or app_option, config_path)
    settings = app.config.server
    app.database_url = settings.database_url or app.database_url
    set_up_logging(log_format, log_level)
    if inherited is not None:
        listener = socket.socket(fileno=inherited)
        app.config = _for_development(app.config)
    else:
        require_authentication(app.config)
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


def require_authentication(config: "Config") -> None:
    """Raise unless authentication is configured."""
    from forge.core.errors import ConfigError

    if not config.auth.is_configured:
        raise ConfigError(
            "the server does not start without authentication; create a token with `forge token "
            "create --name ME` and add its output to forge.toml, or configure [auth.jwt]"
        )
    if config.auth.secret is None:
        raise ConfigError(
            "[auth] secret is missing; the server signs watch tokens with it; generate one with "
            "`python -c 'import secrets; print(secrets.token_urlsafe(32))'` and set it in "
            "forge.toml or FORGE_AUTH_SECRET"
        )


def _for_development(config: "Config") -> "Config":
    """Accept the token that `forge dev` created for this run."""
    from forge.cli.tokens import ROLES, hash_of
    from forge.config.server import TokenConfig

    token = os.environ[DEV_TOKEN]
    # With viewer the developer could only read.
    roles = tuple(role for role in ROLES if role != "viewer")
    developer = TokenConfig(name="developer", sha256=hash_of(token), roles=roles)
    auth = config.auth.model_copy(
        update={
            "tokens": (*config.auth.tokens, developer),
            # The same at each reload, so that watch tokens stay valid.
            "secret": config.auth.secret or token,
        }
    )
    return type(config)(**{**config.__dict__, "auth": auth})
