"""The schedule that the benchmark runs, as an app for `forge worker`."""

from typing import Any

from forge import Forge, ScheduleContext

app = Forge()


@app.schedule("no_op_run", every="1d")
async def no_op_run(ctx: ScheduleContext, payload: dict[str, Any]) -> None:
    """Do nothing, as quickly as possible."""
