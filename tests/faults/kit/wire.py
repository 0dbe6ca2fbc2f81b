"""PostgreSQL's wire protocol, as far as needed to see which statement was committed."""

from __future__ import annotations

import re
import struct
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

Matching = str | Callable[[str], bool]


def matches(matching: Matching, text: str) -> bool:
    """Whether a statement matches, ignoring case and white space."""
    if callable(matching):
        return matching(text)
    return _squeezed(matching) in _squeezed(text)


@dataclass
class Cut:
    """Drops the answers to the next commits of matching statements."""

    matching: Matching
    left: int
    happened: int = 0

    def spend(self) -> None:
        self.left -= 1
        self.happened += 1


class Answer(NamedTuple):
    """The server's bytes that may pass to the client, and whether the connection is cut now."""

    passing: bytes
    cut: bool


@dataclass
class Conversation:
    """Follows one connection and holds back the answer that a cut drops."""

    cuts: list[Cut]
    sent: set[str] = field(default_factory=set)
    _requests: Requests = field(init=False)
    _answers: Frames = field(init=False)
    _held: bytearray = field(default_factory=bytearray)
    _last_tag: bytes = b""
    _failed: bool = False
    # The cut that waits for the open transaction, implicit or explicit, to be committed.
    _armed: Cut | None = None
    _armed_since_ready: bool = False

    def __post_init__(self) -> None:
        self._answers = Frames()
        self._requests = Requests(self.cuts, self.sent, self._answers)

    def client_sent(self, chunk: bytes) -> list[str]:
        """Parse what the client sends, and return the statements that it executes."""
        return self._requests.feed(chunk)

    def server_sent(self, chunk: bytes) -> Answer:
        passing = bytearray()
        for frame in self._answers.feed(chunk):
            self._held += frame.whole
            if self._committed(frame):
                return Answer(bytes(passing), cut=True)
            if self._may_pass(frame):
                passing += self._held
                self._held.clear()
        return Answer(bytes(passing), cut=False)

    def _committed(self, frame: Frame) -> bool:
        """Only ReadyForQuery proves it: an autocommit statement's CommandComplete comes earlier."""
        match frame.kind:
            case b"C" | b"I" | b"s":
                self._note_completion(frame)
            case b"E":
                self._failed = True
            case b"Z":
                return self._end_of_cycle(in_transaction=frame.body != b"I")
        return False

    def _note_completion(self, frame: Frame) -> None:
        request = self._requests.answered_by_completion()
        if frame.kind == b"C":
            self._last_tag = frame.body.rstrip(b"\0")
        # A client that fetches one row of an INSERT gets PortalSuspended; Sync still commits it.
        if request is not None and request.cut is not None:
            self._armed = request.cut
            self._armed_since_ready = True

    def _end_of_cycle(self, *, in_transaction: bool) -> bool:
        self._requests.answered_by_ready()
        armed, failed, tag = self._armed, self._failed, self._last_tag
        self._failed, self._last_tag, self._armed_since_ready = False, b"", False
        if in_transaction:
            return False
        self._armed = None
        if armed is None or armed.left <= 0 or failed or tag == b"ROLLBACK":
            return False
        armed.spend()
        return True

    def _may_pass(self, frame: Frame) -> bool:
        # A client waits for CopyInResponse before it sends the COPY data.
        if frame.kind in (b"Z", b"G"):
            return True
        next_one = self._requests.next
        # Other answers inside an open transaction must pass: the client may be waiting for them.
        return not (
            self._armed_since_ready
            or next_one.cut is not None
            or (self._armed is not None and next_one.may_commit)
        )


@dataclass
class OpaqueConversation:
    """Passes the bytes of another protocol, and keeps what the client sent first."""

    sent: set[str] = field(default_factory=set)

    def client_sent(self, chunk: bytes) -> list[str]:
        if not self.sent:
            self.sent.add(chunk.decode("latin-1"))
        return []

    def server_sent(self, chunk: bytes) -> Answer:
        return Answer(chunk, cut=False)


@dataclass
class Request:
    """One message of the client that the server will answer."""

    kind: bytes
    cut: Cut | None = None
    may_commit: bool = False


class Requests:
    """The client's side: the statement of each Execute, and the unanswered requests."""

    def __init__(self, cuts: list[Cut], sent: set[str], answers: Frames) -> None:
        self._cuts = cuts
        self._sent = sent
        self._frames = Frames(starting_up=True, answers=answers)
        self._statements: dict[bytes, str] = {}
        self._portals: dict[bytes, str] = {}
        self._unanswered: deque[Request] = deque()
        self._executed: list[str] = []

    def feed(self, chunk: bytes) -> list[str]:
        self._executed = []
        for frame in self._frames.feed(chunk):
            self._note(frame)
        return self._executed

    def answered_by_completion(self) -> Request | None:
        if not self._unanswered:
            return None
        first = self._unanswered[0]
        # A simple query may hold many statements, and only ReadyForQuery ends it.
        return self._unanswered.popleft() if first.kind == b"E" else first

    def answered_by_ready(self) -> None:
        # After an error the server skips to the next Sync, so earlier requests are answered too.
        while self._unanswered and self._unanswered.popleft().kind == b"E":
            pass

    @property
    def next(self) -> Request:
        return self._unanswered[0] if self._unanswered else Request(b"")

    def _note(self, frame: Frame) -> None:
        match frame.kind:
            case b"P":
                name, text, _ = frame.body.split(b"\0", 2)
                self._statements[name] = text.decode(errors="replace")
            case b"B":
                portal, name, _ = frame.body.split(b"\0", 2)
                self._portals[portal] = self._statements.get(name, "")
            case b"E":
                self._ask(b"E", self._portals.get(frame.body.split(b"\0", 1)[0], ""))
            case b"Q":
                self._ask(b"Q", frame.body.rstrip(b"\0").decode(errors="replace"))
            case b"S":
                self._unanswered.append(Request(b"S"))
            case b"C" if frame.body[:1] == b"S":
                self._statements.pop(frame.body[1:].rstrip(b"\0"), None)

    def _ask(self, kind: bytes, text: str) -> None:
        self._sent.add(text)
        self._executed.append(text)
        wanted = (cut for cut in self._cuts if cut.left > 0 and matches(cut.matching, text))
        self._unanswered.append(Request(kind, next(wanted, None), bool(_COMMIT.search(text))))


class Frame(NamedTuple):
    """One message; the kind is empty for messages before the session is set up."""

    kind: bytes
    body: bytes
    whole: bytes


class Frames:
    """Splits the bytes of one direction into messages."""

    def __init__(self, *, starting_up: bool = False, answers: Frames | None = None) -> None:
        self._buffer = bytearray()
        self._starting_up = starting_up
        self._answers = answers
        self._bare_bytes = 0
        self._encrypted = False

    def feed(self, chunk: bytes) -> list[Frame]:
        self._buffer += chunk
        frames = []
        while (frame := self._next()) is not None:
            frames.append(frame)
        return frames

    def expect_bare_byte(self) -> None:
        """Expect a single byte without a length: the answer to a request for encryption."""
        self._bare_bytes += 1

    def _next(self) -> Frame | None:
        if self._encrypted and self._buffer:
            return self._take(b"", 0, len(self._buffer))
        if self._bare_bytes and self._buffer:
            self._bare_bytes -= 1
            self._encrypted = self._buffer[:1] != b"N"
            return self._take(b"", 0, 1)
        head = 0 if self._starting_up else 1
        if len(self._buffer) < head + 4:
            return None
        length = head + int(struct.unpack_from("!I", self._buffer, head)[0])
        if len(self._buffer) < length:
            return None
        frame = self._take(bytes(self._buffer[:head]), head + 4, length)
        if self._starting_up:
            self._note_startup(frame.body)
        return frame

    def _take(self, kind: bytes, body_at: int, length: int) -> Frame:
        whole = bytes(self._buffer[:length])
        del self._buffer[:length]
        return Frame(kind, whole[body_at:], whole)

    def _note_startup(self, body: bytes) -> None:
        code = struct.unpack_from("!I", body)[0]
        if code in _ENCRYPTION_REQUESTS:
            if self._answers is not None:
                self._answers.expect_bare_byte()
        else:
            self._starting_up = False


_COMMIT = re.compile(r"\b(commit|end)\b", re.IGNORECASE)
_ENCRYPTION_REQUESTS = (80877103, 80877104)


def _squeezed(text: str) -> str:
    return " ".join(text.lower().split())
