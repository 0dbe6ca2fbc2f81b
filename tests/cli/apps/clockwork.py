"""An app that has schedules only, for the tests of the command line."""

import forge
from forge import ScheduleContext

app = forge.Forge()


@app.cron("0 3 * * *", tz="Europe/Paris")
async def nightly(ctx: ScheduleContext) -> None:
    pass


@app.schedule("fetch_feed", every="1h")
async def fetch_feed(ctx: ScheduleContext, payload: dict) -> None:
    if payload.get("fail"):
        raise ValueError("no luck today")
