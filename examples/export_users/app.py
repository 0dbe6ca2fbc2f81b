"""The job of the example: export users, with progress."""

import asyncio
from typing import Literal

from pydantic import BaseModel, Field

from forge import Forge, JobContext, NonRetryable

USERS = 40
# Seconds per user.
PACE = 0.1

app = Forge()


class ExportUsers(BaseModel):
    """Which users to export, and how."""

    format: Literal["csv", "pdf"]
    users: int = Field(USERS, ge=1, le=1000, description="How many users to export.")


class ExportedUsers(BaseModel):
    """The exported file."""

    file: str
    count: int


@app.job
async def export_users(ctx: JobContext, input: ExportUsers) -> ExportedUsers:
    """Export users to a file. The format `pdf` fails halfway."""
    for done in range(input.users):
        ctx.progress(100 * done / input.users, f"Processing {done + 1} of {input.users}")
        await asyncio.sleep(PACE)
        if input.format == "pdf" and done >= input.users // 2:
            raise NonRetryable("PDF is not supported yet; export as CSV")
    ctx.progress(100, "Export complete")
    return ExportedUsers(file=f"users.{input.format}", count=input.users)
