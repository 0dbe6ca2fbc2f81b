"""An app with schedules, and a time that is not due."""

from datetime import UTC, datetime, timedelta

import pytest

from forge import Forge, ScheduleContext

LATER = datetime(2135, 1, 1, tzinfo=UTC)


@pytest.fixture(autouse=True)
def schedules(app: Forge) -> None:
    @app.schedule("fetch_feed")
    async def fetch_feed(ctx: ScheduleContext, payload: dict) -> timedelta:
        return timedelta(hours=1)

    @app.schedule("hourly", every="1h")
    async def hourly(ctx: ScheduleContext) -> None: ...
