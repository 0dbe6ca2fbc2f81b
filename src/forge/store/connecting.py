"""Opening a connection: host by host, each with its own timeout, to a server of the wanted kind."""

import asyncio
import configparser
import os
import random
import socket
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import asyncpg

from forge.core.database_url import (
    SHORTEST_TIMEOUT,
    ConnectionTarget,
    Host,
    TcpOptions,
    connection_target,
    read_url,
)
from forge.core.errors import ConfigError
from forge.store.statement import load

# A further try is begun when one has not ended after so many seconds: a server that comes back, or
# takes over, answers those that ask now and not those that asked before.
NEXT_TRY = 2.5
MOST_TRIES = 4
# For so long a host that did not answer in time is asked last.
HUNG_FOR = 30.0


class NoHost(ConnectionError):
    """None of several hosts can be used; `errors` are what those raised that did not answer."""

    def __init__(self, message: str, errors: Sequence[Exception] = ()) -> None:
        super().__init__(message)
        self.errors = tuple(errors)


class NoSuitableHost(NoHost):
    """Hosts answer, and none of them is of the kind that target_session_attrs asks for."""


class Connector:
    """Opens connections to the servers of one URL."""

    def __init__(self, url: str, timeout: float) -> None:
        self._url = url
        self._timeout = timeout
        self._read: ConnectionTarget | None = None
        self._hung: dict[Host, float] = {}

    @property
    def target(self) -> ConnectionTarget:
        """What the URL says, or a ConfigError that says what is wrong with it."""
        if self._read is None:
            self._read = _read(self._url, os.environ)
        return self._read

    @property
    def place(self) -> str:
        """Where it connects to, for messages."""
        return self.target.place

    async def connect(
        self, settings: Mapping[str, str], **options: Any
    ) -> "asyncpg.Connection[Any]":
        """Open one connection; the settings are the session's, unless the URL says otherwise."""
        options["server_settings"] = {**settings, **self.target.settings}
        tries: set[asyncio.Task[asyncpg.Connection[Any]]] = set()
        begun = 0
        try:
            while True:
                if begun < MOST_TRIES:
                    tries.add(asyncio.create_task(self._by_hosts(options)))
                    begun += 1
                await asyncio.wait(tries, timeout=NEXT_TRY, return_when=asyncio.FIRST_COMPLETED)
                done = [each for each in tries if each.done()]
                if done:
                    best = next((each for each in done if not _failed(each)), done[0])
                    tries.discard(best)
                    return best.result()
        except GeneratorExit:
            tries.clear()  # the loop was closed around this call, and its tasks with it
            raise
        finally:
            for each in tries:
                each.add_done_callback(_end_unused)
                each.cancel()
            if tries:
                await asyncio.wait(tries)  # none may outlive the event loop

    async def _by_hosts(self, options: dict[str, Any]) -> "asyncpg.Connection[Any]":
        failures: list[tuple[Host, Exception | str]] = []
        spare: asyncpg.Connection[Any] | None = None
        try:
            for host in self._in_order():
                try:
                    connection = await self._at(host, options)
                except (OSError, asyncpg.CannotConnectNowError) as error:
                    failures.append((host, error))
                    continue
                try:
                    unsuited = await self._unsuited(connection)
                except BaseException:
                    connection.terminate()
                    raise
                if unsuited is None:
                    return connection
                failures.append((host, unsuited))
                if self.target.session == "prefer-standby" and spare is None:
                    spare = connection
                else:
                    connection.terminate()
            found, spare = spare, None
        finally:
            if spare is not None:
                spare.terminate()
        return found or _raise(failures, self.target)

    def _in_order(self) -> list[Host]:
        """Return the hosts as named, or shuffled; those that hung lately come last."""
        hosts = list(self.target.hosts)
        if self.target.is_balanced:
            random.shuffle(hosts)
        now = time.monotonic()
        return sorted(hosts, key=lambda host: now - self._hung.get(host, -HUNG_FOR) < HUNG_FOR)

    async def _at(self, host: Host, options: dict[str, Any]) -> "asyncpg.Connection[Any]":
        target = self.target
        began = time.monotonic()
        try:
            connection = await asyncpg.connect(
                f"postgresql://?{urlencode(target.tls, quote_via=quote)}",
                host=host.name,
                port=host.port,
                user=target.user,
                password=target.password,
                passfile=target.passfile,
                database=target.database,
                timeout=target.timeout_for_each(self._timeout),
                target_session_attrs="any",
                direct_tls=target.is_direct_tls or None,
                **target.kerberos,
                **options,
            )
        except (TimeoutError, asyncio.CancelledError):
            # Also where the caller waits no longer: the next one begins with another host.
            if time.monotonic() - began >= SHORTEST_TIMEOUT:
                self._hung[host] = time.monotonic()
            raise
        self._hung.pop(host, None)
        set_tcp_options(connection, target.tcp)
        return connection

    async def _unsuited(self, connection: "asyncpg.Connection[Any]") -> str | None:
        """Say why the session is not of the kind that is wanted; None when it is."""
        target = self.target
        if target.session == "any":
            return None
        settings = connection.get_settings()
        told = getattr(settings, "in_hot_standby", None)
        if told is None:  # behind a pooler, or before PostgreSQL 14
            in_recovery = await connection.fetchval(
                load("server/in_recovery"), timeout=target.timeout_for_each(self._timeout)
            )
        else:
            in_recovery = told == "on"
        is_read_only = getattr(settings, "default_transaction_read_only", "off") == "on"
        if target.suits(in_recovery=in_recovery, is_read_only=is_read_only):
            return None
        if in_recovery:
            return "is a standby (in recovery, read-only)"
        return "is read-only" if is_read_only else "is a primary"


def set_tcp_options(connection: "asyncpg.Connection[Any]", options: TcpOptions) -> None:
    """Let the kernel notice a peer that is gone; a stopped process still acknowledges."""
    found = socket_of(connection)
    if found is None or found.family == socket.AF_UNIX:
        return
    wanted = {
        "TCP_KEEPIDLE": options.idle,
        "TCP_KEEPINTVL": options.interval,
        "TCP_KEEPCNT": options.probes,
        "TCP_USER_TIMEOUT": options.user_timeout,
    }
    found.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, int(options.keepalives))
    for name, value in wanted.items():
        if hasattr(socket, name):  # Linux has all of them
            found.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def socket_of(connection: "asyncpg.Connection[Any]") -> socket.socket | None:
    """Return the socket below a connection; None where it is closed."""
    transport = getattr(connection, "_transport", None)
    found: socket.socket | None = transport and transport.get_extra_info("socket")
    return found


def _read(url: str, env: Mapping[str, str]) -> ConnectionTarget:
    name = read_url(url).get("service") or env.get("PGSERVICE")
    target = connection_target(url, env, _service(name, env) if name else None)
    for parameter in ("sslrootcert", "sslcert", "sslkey", "sslcrl"):
        path = target.tls.get(parameter)
        if path and not Path(path).exists():
            raise ConfigError(
                f"{parameter} in the URL of the database names {path!r}, which does not exist; "
                "correct the path"
            )
    return target


def _service(name: str, env: Mapping[str, str]) -> dict[str, str]:
    """Return the parameters of an entry in a connection service file."""
    own = Path(env.get("PGSERVICEFILE") or Path.home() / ".pg_service.conf")
    shared = Path(env.get("PGSYSCONFDIR", "/etc/postgresql-common")) / "pg_service.conf"
    for path in (own, shared):
        services = configparser.ConfigParser(interpolation=None, strict=False)
        services.read(path)
        if services.has_section(name):
            return dict(services[name])
    raise ConfigError(f"there is no service {name!r} in {own} or {shared}; add it, or name another")


def _raise(failures: list[tuple[Host, Exception | str]], target: ConnectionTarget) -> Any:
    errors = [why for _, why in failures if isinstance(why, Exception)]
    if len(failures) == 1 and errors:
        raise errors[0]
    listed = "; ".join(f"{host} {_told(why)}" for host, why in failures)
    if len(errors) == len(failures):
        raise NoHost(f"none of the hosts answers: {listed}", errors) from errors[-1]
    raise NoSuitableHost(
        f"no host is {target.session}, as target_session_attrs asks: {listed}", errors
    ) from (errors[-1] if errors else None)


def _told(why: Exception | str) -> str:
    if isinstance(why, TimeoutError):
        return "did not answer in time"
    return why if isinstance(why, str) else f"failed: {str(why) or type(why).__name__}"


def _failed(task: "asyncio.Task[asyncpg.Connection[Any]]") -> bool:
    return task.cancelled() or task.exception() is not None


def _end_unused(task: "asyncio.Task[asyncpg.Connection[Any]]") -> None:
    if not _failed(task):
        task.result().terminate()
