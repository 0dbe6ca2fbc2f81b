"""Opens connections: host by host, each with its own timeout, as target_session_attrs requires."""

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
    MIN_TIMEOUT,
    ConnectionTarget,
    Host,
    TcpOptions,
    connection_target,
    read_url,
)
from forge.core.errors import ConfigError
from forge.store.statement import load

# Seconds after which another attempt starts beside the pending ones: a server that restarts or is
# promoted answers new connections, not those opened before.
NEXT_TRY_AFTER = 2.5
MAX_TRIES = 4
# Seconds for which a host that timed out is tried last.
AVOID_FOR = 30.0


class NoHost(ConnectionError):
    """None of several hosts is usable; `errors` are those of the hosts that did not answer."""

    def __init__(self, message: str, errors: Sequence[Exception] = ()) -> None:
        super().__init__(message)
        self.errors = tuple(errors)


class NoSuitableHost(NoHost):
    """Hosts answer, but none of them satisfies target_session_attrs."""


class Connector:
    """Opens connections to the servers of one URL."""

    def __init__(self, url: str, timeout: float) -> None:
        self._url = url
        self._timeout = timeout
        self._read: ConnectionTarget | None = None
        self._timed_out: dict[Host, float] = {}

    @property
    def target(self) -> ConnectionTarget:
        """The parsed URL; raises ConfigError if it is invalid."""
        if self._read is None:
            self._read = _read(self._url, os.environ)
        return self._read

    @property
    def place(self) -> str:
        """The database and its hosts, for messages."""
        return self.target.place

    async def connect(
        self, settings: Mapping[str, str], **options: Any
    ) -> "asyncpg.Connection[Any]":
        """Open one connection with these session settings; settings in the URL take precedence."""
        options["server_settings"] = {**settings, **self.target.settings}
        tries: set[asyncio.Task[asyncpg.Connection[Any]]] = set()
        started = 0
        try:
            while True:
                if started < MAX_TRIES:
                    tries.add(asyncio.create_task(self._try_hosts(options)))
                    started += 1
                await asyncio.wait(
                    tries, timeout=NEXT_TRY_AFTER, return_when=asyncio.FIRST_COMPLETED
                )
                done = [each for each in tries if each.done()]
                if done:
                    best = next((each for each in done if not _failed(each)), done[0])
                    tries.discard(best)
                    return best.result()
        except GeneratorExit:
            tries.clear()  # the loop was closed during this call, and its tasks with it
            raise
        finally:
            for each in tries:
                each.add_done_callback(_end_unused)
                each.cancel()
            if tries:
                await asyncio.wait(tries)  # none may outlive the event loop

    async def _try_hosts(self, options: dict[str, Any]) -> "asyncpg.Connection[Any]":
        failures: list[tuple[Host, Exception | str]] = []
        spare: asyncpg.Connection[Any] | None = None
        try:
            for host in self._ordered_hosts():
                try:
                    connection = await self._open(host, options)
                except (OSError, asyncpg.CannotConnectNowError) as error:
                    failures.append((host, error))
                    continue
                try:
                    unsuitable = await self._unsuitable(connection)
                except BaseException:
                    connection.terminate()
                    raise
                if unsuitable is None:
                    return connection
                failures.append((host, unsuitable))
                if self.target.session == "prefer-standby" and spare is None:
                    spare = connection
                else:
                    connection.terminate()
            found, spare = spare, None
        finally:
            if spare is not None:
                spare.terminate()
        return found or _raise(failures, self.target)

    def _ordered_hosts(self) -> list[Host]:
        """Return the hosts in order, or shuffled; those that recently timed out come last."""
        hosts = list(self.target.hosts)
        if self.target.is_balanced:
            random.shuffle(hosts)
        now = time.monotonic()
        return sorted(
            hosts, key=lambda host: now - self._timed_out.get(host, -AVOID_FOR) < AVOID_FOR
        )

    async def _open(self, host: Host, options: dict[str, Any]) -> "asyncpg.Connection[Any]":
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
            # Also if the caller gives up: the next attempt starts with another host.
            if time.monotonic() - began >= MIN_TIMEOUT:
                self._timed_out[host] = time.monotonic()
            raise
        self._timed_out.pop(host, None)
        set_tcp_options(connection, target.tcp)
        return connection

    async def _unsuitable(self, connection: "asyncpg.Connection[Any]") -> str | None:
        """Return why the session does not satisfy target_session_attrs; None if it does."""
        target = self.target
        if target.session == "any":
            return None
        settings = connection.get_settings()
        reported = getattr(settings, "in_hot_standby", None)
        if reported is None:  # behind a pooler, or before PostgreSQL 14
            in_recovery = await connection.fetchval(
                load("server/in_recovery"), timeout=target.timeout_for_each(self._timeout)
            )
        else:
            in_recovery = reported == "on"
        is_read_only = getattr(settings, "default_transaction_read_only", "off") == "on"
        if target.suits(in_recovery=in_recovery, is_read_only=is_read_only):
            return None
        if in_recovery:
            return "is a standby (in recovery, read-only)"
        return "is read-only" if is_read_only else "is a primary"


def set_tcp_options(connection: "asyncpg.Connection[Any]", options: TcpOptions) -> None:
    """Set keepalives so that the kernel detects a dead peer; a stopped process still acks."""
    found = socket_of(connection)
    if found is None or found.family == socket.AF_UNIX:
        return
    values = {
        "TCP_KEEPIDLE": options.idle,
        "TCP_KEEPINTVL": options.interval,
        "TCP_KEEPCNT": options.probes,
        "TCP_USER_TIMEOUT": options.user_timeout,
    }
    found.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, int(options.keepalives))
    for name, value in values.items():
        if hasattr(socket, name):  # Linux has all of them
            found.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def socket_of(connection: "asyncpg.Connection[Any]") -> socket.socket | None:
    """Return the socket of a connection; None if it is closed."""
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
                f"{parameter} in the database URL names {path!r}, which does not exist; "
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
    raise ConfigError(f"service {name!r} is not in {own} or {shared}; add it, or name another")


def _raise(failures: list[tuple[Host, Exception | str]], target: ConnectionTarget) -> Any:
    errors = [why for _, why in failures if isinstance(why, Exception)]
    if len(failures) == 1 and errors:
        raise errors[0]
    listed = "; ".join(f"{host} {_reason(why)}" for host, why in failures)
    if len(errors) == len(failures):
        raise NoHost(f"none of the hosts answered: {listed}", errors) from errors[-1]
    raise NoSuitableHost(
        f"no host is {target.session}, as target_session_attrs requires: {listed}", errors
    ) from (errors[-1] if errors else None)


def _reason(why: Exception | str) -> str:
    if isinstance(why, TimeoutError):
        return "did not answer in time"
    return why if isinstance(why, str) else f"failed: {str(why) or type(why).__name__}"


def _failed(task: "asyncio.Task[asyncpg.Connection[Any]]") -> bool:
    return task.cancelled() or task.exception() is not None


def _end_unused(task: "asyncio.Task[asyncpg.Connection[Any]]") -> None:
    if not _failed(task):
        task.result().terminate()
