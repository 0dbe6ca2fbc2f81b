"""Runs the HTTP API on a socket with uvicorn."""

import asyncio
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

from forge.cli.processes.child_process import on_stop_signal, tune_garbage_collector
from forge.cli.processes.service_manager import ServiceManager
from forge.config.server import ServerConfig
from forge.core.errors import ConfigError, ForgeError
from forge.core.events import Events
from forge.core.sensitive.names import names_a_secret
from forge.core.sensitive.redact import redact, redact_text
from forge.core.terminal_safe import terminal_safe
from forge.store.roles import API_ROLE

if TYPE_CHECKING:
    import uvicorn
    from starlette.types import ASGIApp

    from forge.app import Forge

SERVER_PACKAGES = ("fastapi", "uvicorn", "httptools", "websockets", "jwt")
# Seconds that requests have to finish after the first signal.
SHUTDOWN_TIMEOUT = 10
# Connections are checked every this many of uvicorn's ticks of 0.1 s.
SWEEP_TICKS = 5
_PARAMETER = re.compile(r"([?&])([^=&\s]+)=([^&\s]*)")
# Seconds without reading after which the kernel closes a client's connection.
UNREAD_TIMEOUT = 40


class CannotListen(ForgeError):
    """The server cannot listen on this address."""


def require_server_extra() -> None:
    """Raise unless the packages of the `server` extra are installed."""
    if missing := [name for name in SERVER_PACKAGES if find_spec(name) is None]:
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
        # Otherwise the kernel keeps unread data of a stalled client forever.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNREAD_TIMEOUT * 1000)
    return listener


def address_of(listener: socket.socket) -> str:
    """Return the URL of a listening socket."""
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
    """Serve an app's HTTP API until a stop signal."""
    from forge.telemetry.logs.listener import log_events

    server = await make_api_server(app, access_log=access_log, is_development=is_development)
    log_events(app.events)

    manager = ServiceManager.from_environment()

    def stop() -> None:
        manager.stopping()
        server.force_exit = server.should_exit
        server.should_exit = True

    on_stop_signal(stop, lifeline)
    tune_garbage_collector()
    announce(listener)
    manager.ready()  # the socket listens: the kernel queues requests until they are accepted
    watching = asyncio.ensure_future(manager.stay_alive())
    try:
        await server.serve([listener])
    finally:
        watching.cancel()


async def make_api_server(
    app: "Forge", *, access_log: bool, is_development: bool = False
) -> "uvicorn.Server":
    """Return the server of an app's HTTP API."""
    from forge.cli.processes.startup_checks import log_api_rights, require_accepted_callers
    from forge.http.app import create_app, end_streams

    app.take_role(API_ROLE)
    # Start the embedded PostgreSQL now; a configured database is connected on first use.
    await (await app.session()).database()
    await require_accepted_callers(app)
    if not is_development:
        await log_api_rights(app)
    api = create_app(app, is_development=is_development)
    return make_server(
        api,
        settings=app.config.server,
        events=app.events,
        access_log=access_log,
        at_end=partial(end_streams, api),
    )


def announce(listener: socket.socket) -> None:
    """Print the server's URL."""
    click.echo(f"forge server listens on {address_of(listener)}")


def make_server(
    api: "ASGIApp",
    *,
    settings: ServerConfig | None = None,
    events: Events | None = None,
    access_log: bool = False,
    at_end: Callable[[], Awaitable[None]] | None = None,
) -> "uvicorn.Server":
    """Return a server for an ASGI app and a socket that already listens."""
    import uvicorn

    from forge.http.connections.limits import ConnectionLimits, Guard
    from forge.http.connections.protocols import GuardedHttp, GuardedWebSocket
    from forge.http.live.messages import MAX_MESSAGE_SIZE

    settings = settings or ServerConfig()
    guard = Guard(ConnectionLimits.of(settings), events or Events(), settings.allowed_origins)

    class Server(uvicorn.Server):
        """Leaves signals to us, so that an orderly shutdown exits with code 0."""

        @contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield

        async def on_tick(self, counter: int) -> bool:
            if counter % SWEEP_TICKS == 0:
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
        # No task and no compressor per socket, so that thousands of sockets need little memory.
        ws=partial(GuardedWebSocket, guard),  # type: ignore[arg-type]
        ws_per_message_deflate=False,
        ws_max_size=MAX_MESSAGE_SIZE,
        lifespan="on",
        log_config=None,
        access_log=access_log,
        server_header=False,
        timeout_keep_alive=ceil(guard.limits.idle_timeout),
        timeout_graceful_shutdown=SHUTDOWN_TIMEOUT,
    )
    return Server(config)


def _set_up_access_log() -> None:
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    access = logging.getLogger("uvicorn.access")
    access.setLevel(logging.INFO)
    access.addFilter(_hide_tokens)


def _hide_tokens(record: logging.LogRecord) -> bool:
    """Redact secrets such as watch tokens in logged URLs."""
    if isinstance(record.args, tuple):
        record.args = tuple(
            _shown_address(part) if isinstance(part, str) else part for part in record.args
        )
    return True


def _shown_address(address: str) -> str:
    path, mark, query = address.partition("?")
    path = "/".join(map(redact_text, path.split("/")))
    return terminal_safe(path + _PARAMETER.sub(_shown_parameter, mark + query))


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
            return "the port is in use; stop the other process, or choose another port with --port"
        case errno.EACCES:
            return "the port is privileged; choose one above 1023 with --port"
    return f"{error.strerror}; choose another address with --host"
