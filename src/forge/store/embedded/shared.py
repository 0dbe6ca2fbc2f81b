"""One server for all who open a folder; it goes when the last of them has gone."""

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from forge.store.embedded import keeper
from forge.store.embedded.binaries import Binaries
from forge.store.embedded.cluster import PATIENCE, Cluster
from forge.store.embedded.detached import spawn_detached
from forge.store.embedded.locks import try_lock, wait_for_lock


def open_shared(
    folder: Path = Path(".forge"),
    *,
    binaries: Binaries | None = None,
    settings: Mapping[str, str] | None = None,
) -> "SharedServer":
    """The server of this folder, started if need be; `settings` count for whoever starts it."""
    cluster = Cluster(folder / "postgres", binaries, settings)
    cluster.make_home()
    _hide_from_git(folder)
    # While a server is being stopped, its keeper holds this lock: then we wait, and start anew.
    users = wait_for_lock(cluster.home / "users.lock", shared=True, patience=PATIENCE)
    try:
        # The keeper first, so that there is none without one should we be killed in between.
        _ensure_keeper(cluster)
        cluster.start()
        return SharedServer(cluster, users)
    except BaseException:
        os.close(users)
        raise


class SharedServer:
    """Your share in the server: it runs at least until you close this, or your process ends."""

    def __init__(self, cluster: Cluster, users: int) -> None:
        self.cluster = cluster
        self.url = cluster.url()
        self._users: int | None = users

    def close(self) -> None:
        """Give up your share; the server stops soon after, unless somebody else has one."""
        if self._users is None:
            return
        with suppress(FileNotFoundError):
            _ensure_keeper(self.cluster)
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


def _ensure_keeper(cluster: Cluster) -> None:
    lock = try_lock(cluster.home / "keeper.lock")
    if lock is None:
        return
    try:
        script: list[str | Path] = [
            sys.executable,
            "-I",
            "-S",
            keeper.__file__,
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
