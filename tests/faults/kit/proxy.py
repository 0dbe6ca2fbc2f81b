"""A seeded TCP proxy before PostgreSQL or the HTTP server, which breaks the network on demand."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TypeVar

from tests.faults.kit.address import Address
from tests.faults.kit.link import Ends, Hold, Link, Mode, Network
from tests.faults.kit.wire import Cut, Matching

__all__ = ["Cut", "Mode", "Proxy"]

Result = TypeVar("Result")


class Proxy:
    """Sits between a worker and its database; its methods can be called from any thread.

    >>> proxy = await Proxy.open(database_url, seed=7)
    >>> proxy.mode = Mode.DROP
    >>> cut = proxy.cut_after_commit(matching="insert into forge_jobs")
    """

    def __init__(self, upstream: Address, seed: int) -> None:
        self.seed = seed
        self._upstream = upstream
        self._network = Network(seed)
        self._links: dict[Link, asyncio.Task[None]] = {}
        self._loop = asyncio.get_running_loop()
        self._listener: asyncio.Server
        self._port: int

    @classmethod
    async def open(cls, upstream: str, *, seed: int = 0) -> Proxy:
        """Listen on a free port of 127.0.0.1 and forward to the server at this URL."""
        proxy = cls(Address.of(upstream), seed)
        proxy._listener = await asyncio.start_server(proxy._accept, "127.0.0.1", 0)
        proxy._port = proxy._listener.sockets[0].getsockname()[1]
        return proxy

    @classmethod
    async def to_http(cls, upstream: str) -> Proxy:
        """The same in front of an HTTP server; a connection matches by its first request."""
        proxy = await cls.open(upstream)
        proxy.network.is_opaque = True
        return proxy

    @classmethod
    @contextmanager
    def in_thread(cls, upstream: str, *, seed: int = 0) -> Iterator[Proxy]:
        """The same proxy for code that blocks."""
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever, name="fault proxy", daemon=True)
        thread.start()
        try:
            opening = asyncio.run_coroutine_threadsafe(cls.open(upstream, seed=seed), loop)
            proxy = opening.result()
            try:
                yield proxy
            finally:
                asyncio.run_coroutine_threadsafe(proxy.close(), loop).result()
        finally:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()

    async def __aenter__(self) -> Proxy:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        self._listener.close()
        running = dict(self._links)
        for link, task in running.items():
            link.reset()
            task.cancel()
        await asyncio.gather(*running.values(), return_exceptions=True)

    def url(self, *, database: str | None = None, user: str | None = None) -> str:
        """The URL that reaches the upstream through this proxy."""
        return self._upstream.moved_to("127.0.0.1", self._port, database=database, user=user)

    @property
    def port(self) -> int:
        return self._port

    @property
    def network(self) -> Network:
        """The modes and the counters of connections and bytes."""
        return self._network

    @property
    def live(self) -> int:
        """How many connections are open now, silent ones included."""
        return len(self._links)

    @property
    def mode(self) -> Mode:
        """The mode of both directions."""
        if self._network.to_server != self._network.to_client:
            raise ValueError("The directions differ: read network.to_server and network.to_client.")
        return self._network.to_server

    @mode.setter
    def mode(self, mode: Mode) -> None:
        self.set_mode(to_server=mode, to_client=mode)

    def set_mode(self, *, to_server: Mode | None = None, to_client: Mode | None = None) -> None:
        """Change one direction or both; a reset in either resets every connection."""

        def change() -> None:
            self._network.to_server = to_server or self._network.to_server
            self._network.to_client = to_client or self._network.to_client
            if self._refuses:
                self._reset(None)

        self._on_loop(change)

    def reset(self, *, matching: Matching | None = None) -> int:
        """Reset open connections, or those that sent a matching statement; new ones pass."""
        return self._on_loop(lambda: self._reset(matching))

    def silence(self, *, matching: Matching | None = None) -> int:
        """Silence open connections, as a NAT that lost its table does; new ones pass."""

        def silence() -> int:
            chosen = self._chosen(matching)
            for link in chosen:
                link.silence()
            return len(chosen)

        return self._on_loop(silence)

    def swallow(self, *, matching: Matching | None) -> None:
        """Silence open and new connections that match, until this is called with None."""

        def swallow() -> None:
            self._network.swallows = matching
            for link in self._chosen(matching) if matching is not None else ():
                link.silence()

        self._on_loop(swallow)

    def cut_after_commit(self, *, matching: Matching, times: int = 1) -> Cut:
        """Let the server commit the next matching statements, but reset before the answer."""
        cut = Cut(matching, times)
        self._on_loop(lambda: self._network.cuts.append(cut))
        return cut

    def hold(self, *, matching: Matching) -> Hold:
        """Let the server run the next matching statement, and hold its answer until released.

        An update that changes no row does not match.
        """
        hold = Hold(matching)
        self._on_loop(lambda: self._network.holds.append(hold))
        return hold

    def point_at(self, upstream: str) -> None:
        """Send new connections to another server, as a failover does; open ones stay."""
        self._upstream = Address.of(upstream)

    @property
    def _refuses(self) -> bool:
        return Mode.RESET in (self._network.to_server, self._network.to_client)

    def _chosen(self, matching: Matching | None) -> list[Link]:
        return [link for link in self._links if matching is None or link.has_sent(matching)]

    def _reset(self, matching: Matching | None) -> int:
        chosen = self._chosen(matching)
        for link in chosen:
            link.reset()
        return len(chosen)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        client = Ends(reader, writer)
        server = None if self._refuses else await self._connect()
        # The mode may have changed while the proxy connected to the upstream.
        if server is None or self._refuses:
            self._network.refused += 1
            client.reset()
            if server is not None:
                server.reset()
            return
        self._network.connections += 1
        link = Link(self._network.connections, client, server, self._network)
        self._links[link] = task = asyncio.create_task(link.run())
        task.add_done_callback(lambda _: self._forget(link))

    def _forget(self, link: Link) -> None:
        del self._links[link]
        link.close()

    async def _connect(self) -> Ends | None:
        try:
            if self._upstream.socket_path is not None:
                return Ends(*await asyncio.open_unix_connection(self._upstream.socket_path))
            return Ends(*await asyncio.open_connection(self._upstream.host, self._upstream.port))
        except OSError:
            return None

    def _on_loop(self, act: Callable[[], Result]) -> Result:
        if self._is_own_loop():
            return act()

        async def acting() -> Result:
            return act()

        return asyncio.run_coroutine_threadsafe(acting(), self._loop).result(timeout=10)

    def _is_own_loop(self) -> bool:
        try:
            return asyncio.get_running_loop() is self._loop
        except RuntimeError:
            return False
