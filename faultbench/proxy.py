"""A TCP proxy between Forge and PostgreSQL that breaks the network on demand."""

import asyncio
import random
import struct
from contextlib import suppress
from enum import StrEnum
from socket import SO_LINGER, SOL_SOCKET
from urllib.parse import SplitResult, urlsplit

from faultbench.wire import CommitCut

CHUNK = 65536


class Mode(StrEnum):
    """How the proxy handles bytes and new connections."""

    PASS = "pass"
    # Each chunk waits for a random part of `delay`.
    DELAY = "delay"
    # Bytes are dropped; connections stay open, and new ones are accepted without a response.
    DROP = "drop"
    # Open connections are reset, new ones refused.
    REFUSE = "refuse"


class Proxy:
    """Listens on a port of 127.0.0.1 and forwards to another server."""

    def __init__(self, upstream: str, rng: random.Random) -> None:
        self.delay = 0.2
        self._dice = rng
        self._mode = Mode.PASS
        self._upstream = upstream
        self._links: set[Link] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.cuts: list[str] = []
        self.cuts_made = 0
        self._listener: asyncio.Server | None = None
        self.port = 0

    @classmethod
    async def open(cls, upstream: str, rng: random.Random) -> "Proxy":
        proxy = cls(upstream, rng)
        await proxy._listen()
        return proxy

    @property
    def url(self) -> str:
        """The URL of the upstream through this proxy."""
        parts = urlsplit(self._upstream)
        return f"postgresql://{parts.username}@127.0.0.1:{self.port}{parts.path}?sslmode=disable"

    @property
    def connections(self) -> int:
        return len(self._links)

    @property
    def listeners(self) -> int:
        """The number of connections that run LISTEN and are not silenced."""
        return sum(link.listens and not link.is_silent for link in self._links)

    async def set_mode(self, mode: Mode) -> None:
        """Change what happens to all connections, open and new."""
        self._mode = mode
        if mode is Mode.REFUSE:
            if self._listener is not None:
                self._listener.close()
                self._listener = None
            self.reset()
        elif self._listener is None:
            await self._listen()

    def reset(self) -> None:
        """Reset the open connections; new connections work."""
        for link in list(self._links):
            link.reset()

    def silence(self, *, listeners_only: bool = False) -> int:
        """Let open connections die without FIN or RST, like a firewall that dropped their state."""
        chosen = [link for link in self._links if link.listens or not listeners_only]
        for link in chosen:
            link.is_silent = True
        return len(chosen)

    def cut_after_commit(self, matching: str) -> None:
        """Reset the next connection that commits such a statement, before the response passes."""
        self.cuts.append(matching)

    def point_at(self, upstream: str) -> None:
        """Send new connections to another server, like a failover."""
        self._upstream = upstream

    async def close(self) -> None:
        if self._listener is not None:
            self._listener.close()
        self.reset()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _listen(self) -> None:
        self._listener = await asyncio.start_server(self._accept, "127.0.0.1", self.port)
        self.port = self._listener.sockets[0].getsockname()[1]

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        link = Link(self, writer)
        self._links.add(link)
        task = asyncio.create_task(self._serve(link, reader))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, link: "Link", reader: asyncio.StreamReader) -> None:
        try:
            while self._mode is Mode.DROP and not link.is_reset:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
            await link.run(reader, urlsplit(self._upstream))
        except OSError:
            pass
        finally:
            self._links.discard(link)
            link.reset()

    async def pass_on(self, link: "Link") -> bool:
        """Return whether to forward a chunk, after the delay of the mode."""
        if self._mode is Mode.DELAY:
            await asyncio.sleep(self._dice.uniform(0, self.delay))
        return not link.is_silent and self._mode is not Mode.DROP


class Link:
    """One connection through the proxy."""

    def __init__(self, proxy: Proxy, client: asyncio.StreamWriter) -> None:
        self.is_silent = False
        self.is_reset = False
        self._proxy = proxy
        self._client = client
        self._server: asyncio.StreamWriter | None = None
        self._cut = CommitCut(proxy.cuts)

    @property
    def listens(self) -> bool:
        return self._cut.listens

    async def run(self, reader: asyncio.StreamReader, upstream: SplitResult) -> None:
        host, port = upstream.hostname, upstream.port
        responses, self._server = await asyncio.open_connection(host, port)
        directions = [
            asyncio.create_task(self._forward(reader, self._server, to_server=True)),
            asyncio.create_task(self._forward(responses, self._client, to_server=False)),
        ]
        try:
            await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
            # A silenced connection stays open: the other side does not see it close.
            while self.is_silent and not self.is_reset:  # noqa: ASYNC110
                await asyncio.sleep(0.1)
        finally:
            for direction in directions:
                direction.cancel()
            await asyncio.gather(*directions, return_exceptions=True)

    async def _forward(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, to_server: bool
    ) -> None:
        while chunk := await reader.read(CHUNK):
            if not await self._proxy.pass_on(self):
                continue
            if to_server:
                self._cut.client_sent(chunk)
            else:
                chunk, is_cut = self._cut.server_sent(chunk)
                if is_cut:
                    self._proxy.cuts_made += 1
                    return
            writer.write(chunk)
            await writer.drain()

    def reset(self) -> None:
        self.is_reset = True
        for writer in (self._client, self._server):
            if writer is None:
                continue
            with suppress(OSError, AttributeError):
                # A linger time of zero turns the close into a reset.
                writer.get_extra_info("socket").setsockopt(
                    SOL_SOCKET, SO_LINGER, struct.pack("ii", 1, 0)
                )
            writer.transport.abort()
