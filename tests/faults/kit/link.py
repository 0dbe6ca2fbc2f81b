"""One proxied connection: two byte streams, each subject to the network's current mode."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import ClassVar, Literal

from tests.faults.kit.wire import Conversation, Cut, Matching, OpaqueConversation, matches

FOUND_NOTHING = b"UPDATE 0\0"


@dataclass(frozen=True)
class Mode:
    """What happens to the bytes of one direction."""

    kind: Literal["pass", "delay", "drop", "reset"]
    milliseconds: float = 0
    jitter: float = 0

    PASS: ClassVar[Mode]
    DROP: ClassVar[Mode]
    RESET: ClassVar[Mode]

    @classmethod
    def delay(cls, milliseconds: float, *, jitter: float = 0) -> Mode:
        """Delay each byte by this much, plus up to `jitter` milliseconds."""
        return cls("delay", milliseconds, jitter)

    def seconds_late(self, random: Random) -> float:
        return (self.milliseconds + self.jitter * random.random()) / 1000


Mode.PASS = Mode("pass")
Mode.DROP = Mode("drop")
Mode.RESET = Mode("reset")


@dataclass
class Hold:
    """Holds back the answer to the next matching update that changes a row."""

    matching: Matching
    happened: bool = False
    _released: asyncio.Event = field(default_factory=asyncio.Event)

    def release(self) -> None:
        """Deliver the answer and everything after it."""
        self._released.set()

    async def over(self) -> None:
        await self._released.wait()


@dataclass
class Network:
    """The state that all links of one proxy share."""

    seed: int
    to_server: Mode = Mode.PASS
    to_client: Mode = Mode.PASS
    cuts: list[Cut] = field(default_factory=list)
    holds: list[Hold] = field(default_factory=list)
    connections: int = 0
    refused: int = 0
    bytes_to_server: int = 0
    bytes_to_client: int = 0
    bytes_dropped: int = 0
    # Whether a connection's end is swallowed while its last bytes are delivered.
    loses_fin: bool = False
    # Whether the server is no PostgreSQL, so that statements cannot be cut or held.
    is_opaque: bool = False
    # Connections that send this are silent from then on.
    swallows: Matching | None = None


@dataclass
class Ends:
    """The reader and the writer of one socket."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    def reset(self) -> None:
        """Close with RST instead of FIN, as a crashed host or a firewall does."""
        connection = self.writer.get_extra_info("socket")
        if connection is not None and not self.writer.transport.is_closing():
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


class Link:
    """One client's connection and the server's connection behind it."""

    def __init__(self, number: int, client: Ends, server: Ends, network: Network) -> None:
        self._client = client
        self._server = server
        self._network = network
        self._hold: Hold | None = None
        self._conversation = (
            OpaqueConversation() if network.is_opaque else Conversation(network.cuts)
        )
        self._to_server = Lane(
            client.reader, server.writer, Random(f"{network.seed}:{number}:to server")
        )
        self._to_client = Lane(
            server.reader, client.writer, Random(f"{network.seed}:{number}:to client")
        )

    async def run(self) -> None:
        await asyncio.gather(
            self._to_server.collect(lambda: self._network.to_server, self._from_client),
            self._to_client.collect(lambda: self._network.to_client, self._from_server),
            self._deliver(self._to_server, lambda: self._network.to_server, self._count_to_server),
            self._deliver(self._to_client, lambda: self._network.to_client, self._count_to_client),
        )

    def reset(self) -> None:
        self._client.reset()
        self._server.reset()

    def close(self) -> None:
        self._client.writer.close()
        self._server.writer.close()

    def silence(self) -> None:
        """Drop everything from now on, in both directions, but keep the sockets open."""
        self._to_server.torn = self._to_client.torn = True

    def has_sent(self, matching: Matching) -> bool:
        return any(matches(matching, text) for text in self._conversation.sent)

    def _from_client(self, chunk: bytes) -> bytes:
        statements = self._conversation.client_sent(chunk)
        if self._network.swallows is not None and self.has_sent(self._network.swallows):
            self.silence()
        for hold in self._network.holds:
            if not hold.happened and any(matches(hold.matching, text) for text in statements):
                hold.happened = True
                self._hold = hold
        return chunk

    def _from_server(self, chunk: bytes) -> bytes:
        answer = self._conversation.server_sent(chunk)
        if answer.cut:
            self.reset()
            return b""
        return answer.passing

    async def _deliver(
        self, lane: Lane, mode: Callable[[], Mode], count: Callable[[int], None]
    ) -> None:
        try:
            while (chunk := await lane.next_due()) is not None:
                if lane is self._to_client and self._hold is not None:
                    await self._wait_for(self._hold, chunk)
                if lane.torn or mode().kind == "drop":
                    # A stream with a gap cannot be parsed, so it stays silent.
                    lane.torn = True
                    self._network.bytes_dropped += len(chunk)
                    continue
                lane.target.write(chunk)
                await lane.target.drain()
                count(len(chunk))
        except ConnectionError:
            lane.broken = True
        self._end(silently=lane.torn or mode().kind == "drop", broken=lane.broken)

    async def _wait_for(self, hold: Hold, chunk: bytes) -> None:
        if FOUND_NOTHING in chunk:
            hold.happened, self._hold = False, None
        else:
            await hold.over()

    def _end(self, *, silently: bool, broken: bool) -> None:
        """Close the other side too, unless the network swallows that."""
        if silently or (self._network.loses_fin and not broken):
            return
        if broken:
            self.reset()
        else:
            self.close()

    def _count_to_server(self, size: int) -> None:
        self._network.bytes_to_server += size

    def _count_to_client(self, size: int) -> None:
        self._network.bytes_to_client += size


class Lane:
    """One direction of a link: bytes are queued until they are due, in order."""

    def __init__(
        self, source: asyncio.StreamReader, target: asyncio.StreamWriter, random: Random
    ) -> None:
        self.target = target
        self.torn = False
        self.broken = False
        self._source = source
        self._random = random
        self._waiting: asyncio.Queue[tuple[float, bytes] | None] = asyncio.Queue()

    async def collect(self, mode: Callable[[], Mode], inspect: Callable[[bytes], bytes]) -> None:
        loop = asyncio.get_running_loop()
        try:
            while chunk := await self._source.read(65_536):
                due = loop.time() + mode().seconds_late(self._random)
                if passing := inspect(chunk):
                    self._waiting.put_nowait((due, passing))
        except ConnectionError:
            self.broken = True
        finally:
            self._waiting.put_nowait(None)

    async def next_due(self) -> bytes | None:
        item = await self._waiting.get()
        if item is None:
            return None
        due, chunk = item
        late = due - asyncio.get_running_loop().time()
        if late > 0:
            await asyncio.sleep(late)
        return chunk
