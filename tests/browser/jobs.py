"""The job that the pages of the browser tests follow: it goes on when a test lets it."""

import asyncio
from typing import Literal

from pydantic import BaseModel

import forge
from forge import JobContext, NonRetryable


class Stage:
    """How far jobs may go, in percent."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Stop every job at its start; an event belongs to the loop of one test."""
        self._limit = 0
        self._moved = asyncio.Event()

    def advance(self, limit: int) -> None:
        """Let every job go on to this percentage; 100 lets it end."""
        self._limit = limit
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()

    async def reach(self, percent: int) -> None:
        """Wait until jobs may go on to this percentage."""
        while percent > self._limit:
            await self._moved.wait()


stage = Stage()


class ExportUsers(BaseModel):
    """Which users to export."""

    format: Literal["csv", "pdf"]


class ExportedUsers(BaseModel):
    """The exported file."""

    count: int


@forge.job
async def export_users(ctx: JobContext, input: ExportUsers) -> ExportedUsers:
    """Export users to a file."""
    for percent in range(0, 100, 10):
        await stage.reach(percent)
        ctx.progress(percent, f"{percent} of 100")
        if input.format == "pdf":
            raise NonRetryable("PDF is not supported")
    await stage.reach(100)
    ctx.progress(100, "done")
    return ExportedUsers(count=100)


# The app from which the pages' trackers are generated; each test has its own.
app = forge.Forge()
app.register(export_users)
