"""Records when child processes of workers exit: a killed child cannot record it itself."""

import json
import threading
from collections.abc import Callable
from pathlib import Path

from faultbench.history import History, Kind

INTERVAL = 0.02


class ChildWatch:
    """Follows a history and adds the exits of the child processes in which handlers started."""

    def __init__(self, history: History, workers: Callable[[], set[int]]) -> None:
        self._history = history
        self._workers = workers
        self._alive: set[int] = set()
        self._read_to = 0
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stopped.wait(INTERVAL):
            self._read()
            for pid in [pid for pid in self._alive if not _is_alive(pid)]:
                self._alive.discard(pid)
                self._history.record(Kind.GONE, pid=pid)

    def _read(self) -> None:
        if not self._history.path.exists():
            return
        with self._history.path.open("rb") as file:
            file.seek(self._read_to)
            read = file.read()
        whole = read[: read.rfind(b"\n") + 1]
        self._read_to += len(whole)
        workers = self._workers()
        for event in map(json.loads, whole.splitlines()):
            # A worker in a separate PID namespace, and its children, have other pids.
            if event["kind"] == Kind.STARTED and event["parent"] in workers:
                self._alive.add(event["pid"])


def _is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"
