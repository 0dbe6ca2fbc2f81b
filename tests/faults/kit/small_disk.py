"""A disk that can be filled: a small tmpfs that holds a database."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from uuid import uuid4

import asyncpg
import pytest

from forge.store.embedded import Cluster

MEGABYTES = 32


class SmallDisk:
    """A disk that holds a database and the files that `fill` writes."""

    def __init__(self, folder: Path) -> None:
        self.space = folder / "space"
        self._filler = folder / "filler"

    def fill(self) -> None:
        """Use up all free space."""
        with self._filler.open("wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(4096))
            except OSError:
                return

    def free(self) -> None:
        self._filler.unlink(missing_ok=True)


@contextmanager
def small_disk(data: Path) -> Iterator[SmallDisk]:
    """Mount a small disk with a folder that the server's account owns."""
    folder = Path(tempfile.mkdtemp(prefix="forge-small-disk-"))
    folder.chmod(0o711)
    options = f"size={MEGABYTES}m,mode=0755"
    mount = ["mount", "-t", "tmpfs", "-o", options, "forge-small-disk", str(folder)]
    mounted = subprocess.run(mount, capture_output=True, text=True)
    if mounted.returncode:
        folder.rmdir()
        pytest.skip(f"a small disk needs the right to mount a tmpfs: {mounted.stderr.strip()}")
    try:
        disk = SmallDisk(folder)
        disk.space.mkdir(mode=0o700)
        os.chown(disk.space, data.stat().st_uid, data.stat().st_gid)
        yield disk
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
        folder.rmdir()


@asynccontextmanager
async def database_on(disk: SmallDisk, server: Cluster, template: str) -> AsyncIterator[str]:
    """A migrated database on this disk, dropped at the end of the block."""
    name = f"small_{uuid4().hex[:12]}"
    admin = await asyncpg.connect(server.url("postgres"))
    await admin.execute(f"create tablespace {name} location '{disk.space}'")
    create = f"create database {name} template {template} tablespace {name} strategy file_copy"
    await admin.execute(create)
    try:
        yield server.url(name)
    finally:
        await admin.execute(f"drop database {name} with (force)")
        await admin.execute(f"drop tablespace {name}")
        await admin.close()
