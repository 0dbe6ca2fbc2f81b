"""An older build of the bench's app that has only one job type."""

from typing import Any

from faultbench.apps.jobs import recorded
from forge import Forge, JobContext

app = Forge()


@app.job
async def known_to_all(ctx: JobContext, input: dict[str, Any]) -> None:
    with recorded(ctx, input):
        pass
