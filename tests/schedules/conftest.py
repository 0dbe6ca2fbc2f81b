"""Schedules run in the same apps and workers as jobs."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from forge import Forge, ScheduleRecord
from tests.apps import app, make_app, work
from tests.faults.kit.process import until

__all__ = ["app", "make_app", "work"]

Until = Callable[..., Awaitable[ScheduleRecord]]
# Not due while any of these tests is run.
LATER = datetime(2135, 1, 1, tzinfo=UTC)


@pytest.fixture
def becomes(app: Forge) -> Until:
    """Wait until a schedule is as a predicate wants it, and return it."""

    async def wait(
        type: str, predicate: Callable[[ScheduleRecord], Any], key: str = "", **options: Any
    ) -> ScheduleRecord:
        async def look() -> ScheduleRecord | None:
            row = await app.schedules.get(type, key, **options)
            return row if predicate(row) else None

        found = await until(look, 20, f"the schedule {type} {key} is as it should be")
        assert found is not None
        return found

    return wait
