"""An app with FAULTBENCH_TYPES job types."""

import asyncio
import os
from typing import Any

from faultbench.apps.jobs import recorded
from forge import Forge, JobContext

app = Forge()
COUNT = int(os.environ.get("FAULTBENCH_TYPES", "17"))


def _define(number: int) -> None:
    @app.job(name=f"type_{number}")
    async def handler(ctx: JobContext, input: dict[str, Any]) -> None:
        if input.get("mark"):
            with recorded(ctx, input):
                return
        await asyncio.sleep(0.01)


for _number in range(COUNT):
    _define(_number)
