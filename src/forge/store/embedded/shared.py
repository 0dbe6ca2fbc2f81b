"""One server for all processes that open a folder; it stops after the last of them."""

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from forge.store.embedded import stopper
from forge.store.embedded.binaries import Binaries
from forge.store.embedded.cluster import START_TIMEOUT, Cluster
from forge.store.embedded.processes import spawn_detached, try_lock, wait_for_lock


def open_shared(
    folder: Path = Path(".forge"),
    *,
    binaries: Binaries | None = None,
    settings: Mapping[str, str] | None = None,
) -> "SharedServer":
    """Return the server of this folder; `settings` apply only if this call starts it."""
    cluster = Cluster(folder / "postgres", binaries, settings)
    cluster.make_home()
    _hide_from_git(folder)
    # While a server is being stopped, its stopper holds this lock: wait, then start it again.
    users = wait_for_lock(cluster.home / "users.lock", shared=True, timeout=START_TIMEOUT)
    try:
        # The stopper first: if this process is killed in between, no server is left running.
        _ensure_stopper(cluster)
        cluster.start()
        return SharedServer(cluster, users)
    except BaseException:
        os.close(users)
        raise


class SharedServer:
    """A user of the server: it runs at least until this is closed or the process ends."""

    def __init__(self, cluster: Cluster, users: int) -> None:
        self.cluster = cluster
        self.url = cluster.url()
        self._users: int | None = users

    def close(self) -> None:
        """Stop using the server; it stops soon after, unless another process uses it."""
        if self._users is None:
            return
        with suppress(FileNotFoundError):
            _ensure_stopper(self.cluster)
        os.close(self._users)
        self._users = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def _ensure_stopper(cluster: Cluster) -> None:
    lock = try_lock(cluster.home / "stopper.lock")
    if lock is None:
        return
    try:
        script: list[str | Path] = [
            sys.executable,
            "-I",
            "-S",
            stopper.__file__,
            cluster.home,
            str(lock),
        ]
        spawn_detached(script, lock=lock, log=cluster.log.path)
    finally:
        os.close(lock)


def _hide_from_git(folder: Path) -> None:
    ignore = folder / ".gitignore"
    if not ignore.exists():
        ignore.write_text("*\n")
