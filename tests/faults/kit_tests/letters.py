"""The table that the kit's own tests write to."""

from __future__ import annotations

import asyncpg

INSERT = "insert into letters (word) values ($1) returning id"
LOST = (OSError, asyncpg.PostgresConnectionError, asyncpg.InterfaceError)


async def words(direct: asyncpg.Connection) -> list[str]:
    return [row["word"] for row in await direct.fetch("select word from letters order by word")]
