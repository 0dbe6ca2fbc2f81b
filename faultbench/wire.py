"""The part of PostgreSQL's protocol that is needed to drop the response to a commit."""

import struct
from collections.abc import Iterator


class Frames:
    """Splits one direction of a connection into messages of (type, body, bytes)."""

    def __init__(self, *, starts_untyped: bool) -> None:
        self._buffer = bytearray()
        self._untyped = starts_untyped

    def feed(self, chunk: bytes) -> Iterator[tuple[bytes, bytes, bytes]]:
        self._buffer += chunk
        while True:
            head = 0 if self._untyped else 1
            if len(self._buffer) < head + 4:
                return
            (length,) = struct.unpack_from("!I", self._buffer, head)
            if len(self._buffer) < head + length:
                return
            whole = bytes(self._buffer[: head + length])
            del self._buffer[: head + length]
            self._untyped = False
            yield whole[:head], whole[head + 4 :], whole


class CommitCut:
    """Follows a connection and decides when to drop the response to a matching commit."""

    def __init__(self, wanted: list[str]) -> None:
        # Texts of statements; the list may grow while the connection is open.
        self._wanted = wanted
        self.listens = False
        self._from_client = Frames(starts_untyped=True)
        self._from_server = Frames(starts_untyped=False)
        self._statements: dict[bytes, str] = {}
        self._bound = ""
        # The text of the wanted statement whose commit is awaited.
        self._armed: str | None = None
        self._executes = False
        self._failed = False
        self._held = bytearray()

    def client_sent(self, chunk: bytes) -> None:
        for kind, body, _ in self._from_client.feed(chunk):
            if kind == b"P":
                name, text, _ = body.split(b"\0", 2)
                self._statements[name] = text.decode(errors="replace")
            elif kind == b"B":
                _, name, _ = body.split(b"\0", 2)
                self._bound = self._statements.get(name, "")
            elif kind == b"E":
                self._arm(self._bound)
            elif kind == b"Q":
                self._arm(body.decode(errors="replace"))
            elif kind == b"H":
                # The client waits for a description, which ends without ReadyForQuery.
                self._executes = False

    def server_sent(self, chunk: bytes) -> tuple[bytes, bool]:
        """Return the bytes to forward to the client, and whether to cut the connection now."""
        passing = bytearray()
        for kind, body, whole in self._from_server.feed(chunk):
            self._held += whole
            if kind == b"E":
                self._failed = True
            if kind == b"Z":
                # Only this message proves the commit; responses inside a transaction pass.
                if body == b"I":
                    if self._armed in self._wanted and not self._failed:
                        self._wanted.remove(self._armed)
                        return bytes(passing), True
                    self._armed = None
                self._failed = False
            if kind == b"Z" or self._armed is None or not self._executes:
                passing += self._held
                self._held.clear()
        return bytes(passing), False

    def _arm(self, text: str) -> None:
        self._executes = True
        self.listens = self.listens or text.lower().startswith("listen ")
        self._armed = self._armed or next((part for part in self._wanted if part in text), None)
