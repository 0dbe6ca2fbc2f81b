"""The schema that the migrations come to, as PostgreSQL itself writes it down."""

import asyncio
import subprocess
import tempfile
from pathlib import Path

from forge.store.database import Database
from forge.store.embedded import Binaries, Cluster
from forge.store.migrate import migrate

HEADER = "-- Generated from sql/migrations by `make format`: what they come to, for reading.\n"
# What pg_dump writes about the session that would load it, not about the schema.
NOISE = ("--", "SET ", "SELECT pg_catalog.set_config", "\\")


def schema_sql() -> str:
    """Apply the migrations to an empty database and dump what is there."""
    with tempfile.TemporaryDirectory(prefix="forge-schema-") as folder:
        binaries = Binaries.from_wheel()
        cluster = Cluster(Path(folder) / "postgres", binaries, {"fsync": "off"})
        cluster.init()
        cluster.start()
        try:
            asyncio.run(_migrate(cluster.url()))
            dump = subprocess.run(
                [str(binaries.folder / "pg_dump"), "--schema-only", "--no-owner", cluster.url()],
                check=True,
                capture_output=True,
                text=True,
            )
        finally:
            cluster.stop("immediate")
    return HEADER + _without_noise(dump.stdout)


async def _migrate(url: str) -> None:
    database = Database(url)
    await migrate(database)
    await database.close()


def _without_noise(dump: str) -> str:
    kept = [line for line in dump.splitlines() if not line.startswith(NOISE)]
    lines = [line for i, line in enumerate(kept) if line or (i and kept[i - 1])]
    return "\n".join(lines).strip() + "\n"
