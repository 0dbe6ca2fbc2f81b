"""The server's log, for when it does not start."""

from pathlib import Path

LARGEST = 10_000_000
TAIL = 20


class ServerLog:
    """A log file, of which only what came since the last start is of interest."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._begin = 0

    def begin(self) -> None:
        """Mark a start; a log that has grown large is put aside."""
        if self.path.exists() and self.path.stat().st_size > LARGEST:
            self.path.replace(self.path.with_suffix(".log.old"))
        self._begin = self.path.stat().st_size if self.path.exists() else 0

    def tail(self) -> str:
        """The last lines since the start, as the end of an error message."""
        if not self.path.exists():
            return " It has written no log. Try again."
        with self.path.open("rb") as file:
            file.seek(self._begin)
            lines = file.read().decode(errors="replace").splitlines()[-TAIL:]
        said = "".join(f"\n  {line}" for line in lines)
        return f" Its log {self.path} ends so; mend what it names and try again:{said}"
