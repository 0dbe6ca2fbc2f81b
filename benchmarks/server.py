"""A throwaway PostgreSQL 18 with default settings, separate from your own server."""

import asyncio
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from forge.store.embedded import Cluster


class ThrowawayServer:
    """A server on a socket in a temporary folder, running during a `with` or `async with` block.

    The block receives the server's DSN; at its end the server stops and the folder is removed.
    """

    def __init__(self, settings: Mapping[str, str] | None = None) -> None:
        self._settings = settings

    def __enter__(self) -> str:
        self._folder = Path(tempfile.mkdtemp(prefix="forge-bench-"))
        # A server started by root runs under another account, which needs access to its files.
        self._folder.chmod(0o711)
        self._cluster = Cluster(self._folder / "postgres", settings=self._settings)
        try:
            self._cluster.start()
        except BaseException:
            self.__exit__()
            raise
        return self._cluster.url()

    def __exit__(self, *_error: object) -> None:
        self._cluster.stop()
        shutil.rmtree(self._folder)

    async def __aenter__(self) -> str:
        return await asyncio.to_thread(self.__enter__)

    async def __aexit__(self, *_error: object) -> None:
        await asyncio.to_thread(self.__exit__)
