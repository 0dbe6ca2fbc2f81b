"""Serving the HTTP API on a socket, with uvicorn, until a signal or the parent's end."""

import errno
import logging
import re
import socket
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from math import ceil
from typing import TYPE_CHECKING
from urllib.parse import unquote_plus

import click

from forge.cli.offspring import obey
from forge.config_server import ServerConfig
from forge.core.errors import ConfigError, ForgeError
from forge.core.event import Events
from forge.core.harmless import harmless
from forge.core.redact import redact, redact_text
from forge.core.sensitive_names import names_a_secret
from forge.store.roles import API_ROLE

if TYPE_CHECKING:
    import uvicorn
    from starlette.types import ASGIApp

    from forge.app import Forge

NEEDED = ("fastapi", "uvicorn", "httptools", "websockets", "jwt")
# How long requests may take to end after the first signal.
GRACE = 10
# Between sweeps over the connections, in uvicorn's ticks of 0.1 s.
SWEEP = 5
_PARAMETER = re.compile(r"([?&])([^=&\s]+)=([^&\s]*)")
# After so many seconds without reading a client counts as gone.
STALLED = 40


class CannotListen(ForgeError):
    """The address that the server was to listen on is not to be had."""


def see_that_it_can_serve() -> None:
    """Raise when what the server is made of is not installed."""
    if missing := [name for name in NEEDED if find_spec(name) is None]:
        raise ConfigError(
            f"the server needs {', '.join(missing)}; run `pip install 'forge-jobs[server]'`"
        )


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens on this address."""
    try:
        family, _, _, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.create_server(address[:2], family=family, backlog=2048)
    except OSError as error:
        raise CannotListen(f"cannot listen on {host}:{port}: {_advice(error)}") from error
    if sys.platform == "linux":
        # What a client has stopped to read would otherwise be kept for it for ever.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, STALLED * 1000)
    return listener


def address_of(listener: socket.socket) -> str:
    """Return the URL of what listens."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


async def serve(
    app: "Forge",
    listener: socket.socket,
    *,
    lifeline: int | None,
    access_log: bool,
    is_development: bool = False,
) -> None:
    """Serve an app's HTTP API until told to stop."""
    from forge.telemetry.logs import log_events

    server = await make_api_server(app, access_log=access_log, is_development=is_development)
    log_events(app.events)

    def stop() -> None:
        server.force_exit = server.should_exit
        server.should_exit = True

    obey(stop, lifeline)
    announce(listener)
    await server.serve([listener])


async def make_api_server(
    app: "Forge", *, access_log: bool, is_development: bool = False
) -> "uvicorn.Server":
    """Return the server of an app's HTTP API."""
    from forge.cli.check_callers import see_that_callers_are_accepted, tell_rights
    from forge.http.app import create_app, end_streams

    app._role = API_ROLE
    # The embedded PostgreSQL starts now; a configured one is reached when it is first needed.
    await (await app.session()).database()
    await see_that_callers_are_accepted(app)
    if not is_development:
        await tell_rights(app)
    api = create_app(app, is_development=is_development)
    return make_server(
        api,
        settings=app.config.server,
        events=app.events,
        access_log=access_log,
        at_end=partial(end_streams, api),
    )


def announce(listener: socket.socket) -> None:
    """Print where the server can be reached."""
    click.echo(f"forge server listens on {address_of(listener)}")


def make_server(
    api: "ASGIApp",
    *,
    settings: ServerConfig | None = None,
    events: Events | None = None,
    access_log: bool = False,
    at_end: Callable[[], Awaitable[None]] | None = None,
) -> "uvicorn.Server":
    """Return the server of an ASGI app, for a socket that listens already."""
    import uvicorn

    from forge.http.connections import ConnectionLimits, Guard
    from forge.http.guarded_protocols import GuardedHttp, GuardedWebSocket
    from forge.http.live_messages import LARGEST

    guard = Guard(ConnectionLimits.of(settings or ServerConfig()), events or Events())

    class Server(uvicorn.Server):
        """The signals are ours: a server that ends in good order ends with exit code 0."""

        @contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield

        async def on_tick(self, counter: int) -> bool:
            if counter % SWEEP == 0:
                guard.sweep(self.server_state.connections)
            return await super().on_tick(counter)

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            if at_end is not None:
                await at_end()
            await super().shutdown(sockets)

    _set_up_access_log()
    config = uvicorn.Config(
        api,
        http=partial(GuardedHttp, guard),  # type: ignore[arg-type]
        # No task per socket and no compressor in it: thousands of them stay small.
        ws=partial(GuardedWebSocket, guard),  # type: ignore[arg-type]
        ws_per_message_deflate=False,
        ws_max_size=LARGEST,
        lifespan="on",
        log_config=None,
        access_log=access_log,
        server_header=False,
        timeout_keep_alive=ceil(guard.limits.idle_timeout),
        timeout_graceful_shutdown=GRACE,
    )
    return Server(config)


def _set_up_access_log() -> None:
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    access = logging.getLogger("uvicorn.access")
    access.setLevel(logging.INFO)
    access.addFilter(_hide_tokens)


def _hide_tokens(record: logging.LogRecord) -> bool:
    """Take secrets out of the addresses that are logged: tokens let in anyone who reads them."""
    if isinstance(record.args, tuple):
        record.args = tuple(
            _shown_address(part) if isinstance(part, str) else part for part in record.args
        )
    return True


def _shown_address(address: str) -> str:
    path, mark, query = address.partition("?")
    path = "/".join(map(redact_text, path.split("/")))
    return harmless(path + _PARAMETER.sub(_shown_parameter, mark + query))


def _shown_parameter(found: re.Match[str]) -> str:
    before, name, value = found.groups()
    plain = unquote_plus(unquote_plus(name))
    text = unquote_plus(value)
    if not names_a_secret(plain) and redact({plain: text}) == {plain: text}:
        return found[0]
    return f"{before}{redact_text(name)}=***"


def _advice(error: OSError) -> str:
    match error.errno:
        case errno.EADDRINUSE:
            return "the port is taken; stop what listens there, or choose another with --port"
        case errno.EACCES:
            return "the port is not for everybody; choose one above 1023 with --port"
    return f"{error.strerror}; choose another address with --host"
