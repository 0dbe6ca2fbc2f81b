"""What an attempt reports while it runs: log lines and progress messages, bounded in number."""

from collections import deque
from typing import Literal, NamedTuple

# The progress messages of an attempt that are kept.
PROGRESS_KEPT = 50
# Once as many lines were kept as there is room for, this many more a second.
KEPT_PER_SECOND = 1.0

LineKind = Literal["log", "progress"]
Level = Literal["debug", "info", "warning", "error"]


class LogLine(NamedTuple):
    """One line of an attempt's log, or one progress message."""

    kind: LineKind
    # How many lines of its kind the attempt has written, this one included.
    number: int
    # Its place: a newer line replaces the oldest one in the same place.
    slot: int
    # When it was written, on the clock of the machine that counts seconds since its start.
    moment: float
    level: Level | None
    message: str
    # JSON.
    fields: str | None
    percent: int | None


class BoundedLines:
    """The lines of one kind that wait to be stored.

    The first lines are all kept, then one a second, always the newest: a handler that writes in a
    tight loop costs no more than one that writes once a second.
    """

    def __init__(self, kind: LineKind, room: int) -> None:
        self._kind: LineKind = kind
        self._room = room
        self._tokens = float(room)
        self._refilled_at = 0.0
        self._number = 0
        self._kept = 0
        # The newest line, while there is no room for it.
        self._held: LogLine | None = None
        self._waiting: deque[LogLine] = deque(maxlen=room)

    @property
    def is_held(self) -> bool:
        """Whether a line waits until there is room for it."""
        return self._held is not None

    def add(
        self,
        moment: float,
        message: str,
        *,
        level: Level | None = None,
        fields: str | None = None,
        percent: int | None = None,
    ) -> None:
        """Add a line; one that is held gives way to it."""
        self._number += 1
        self._held = LogLine(self._kind, self._number, 0, moment, level, message, fields, percent)
        self._keep(moment)

    def receive(self, line: LogLine) -> None:
        """Add a line that was kept in another process."""
        self._waiting.append(line)

    def take(self, now: float, *, is_end: bool = False) -> list[LogLine]:
        """Take out what is to be stored; at the end of the attempt a held line, too."""
        if self._held is not None:
            self._keep(now, is_end=is_end)
        taken = list(self._waiting)
        self._waiting.clear()
        return taken

    def _keep(self, now: float, *, is_end: bool = False) -> None:
        elapsed, self._refilled_at = now - self._refilled_at, now
        self._tokens = min(self._tokens + elapsed * KEPT_PER_SECOND, float(self._room))
        if self._held is None or (self._tokens < 1 and not is_end):
            return
        self._tokens -= 1
        self._waiting.append(self._held._replace(slot=self._kept % self._room))
        self._kept += 1
        self._held = None
