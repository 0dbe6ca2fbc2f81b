"""Assertions on dispatched jobs, and what their messages say was there instead."""

from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import ANY

import pytest
from pydantic import BaseModel

from forge import Forge, InvalidValue, JobContext, JobDefinition
from forge.testing import assert_dispatched, assert_not_dispatched, dispatched, within


class Export(BaseModel):
    format: str
    rows: int = 4


@pytest.fixture
def export(app: Forge) -> JobDefinition[Export, None]:
    @app.job
    async def export(ctx: JobContext, input: Export) -> None: ...

    return export


async def test_dicts_are_compared_by_the_keys_that_they_have(
    app: Forge, export: JobDefinition[Export, None]
) -> None:
    await export.dispatch(Export(format="csv"), tags=["a"], priority="high", delay="2h")

    await assert_dispatched(app, export, {"format": "csv"})
    await assert_dispatched(app, "export", {"format": ANY}, tags=["a"], priority="high", times=1)
    await assert_dispatched(app, export, Export(format="csv", rows=4), status="pending")
    await assert_dispatched(app, export, scheduled_at=within("1m", of="2h"))
    await assert_not_dispatched(app, export, Export(format="csv", rows=5))
    await assert_not_dispatched(app, export, scheduled_at=within("1h"))
    (record,) = await dispatched(app)
    assert record.input == {"format": "csv", "rows": 4}


async def test_a_failure_shows_what_was_there_instead(
    app: Forge, export: JobDefinition[Export, None]
) -> None:
    @app.job
    async def mail(ctx: JobContext, input: dict[str, Any]) -> None: ...

    await export.dispatch(Export(format="pdf"))
    await mail.dispatch({})
    await mail.dispatch({})

    with pytest.raises(AssertionError) as raised:
        await assert_dispatched(app, export, {"format": "csv"}, scheduled_at=within("1h", of="5h"))

    message = str(raised.value)
    assert "expected job export(input={'format': 'csv'}, scheduled_at=within('1h', of='5h'))" in (
        message
    )
    assert "there is 1 of export:" in message
    assert "input.format is 'pdf', expected 'csv'" in message
    assert "ago), expected within('1h', of='5h')" in message
    assert "other jobs: mail 2×" in message


async def test_counts_and_absence_are_explained(
    app: Forge, export: JobDefinition[Export, None]
) -> None:
    with pytest.raises(AssertionError, match="no export was dispatched\nthere are no other jobs"):
        await assert_dispatched(app, export)
    await export.dispatch(Export(format="csv"))
    with pytest.raises(AssertionError, match=r"expected job export\(\) 2×, found 1×"):
        await assert_dispatched(app, export, times=2)
    with pytest.raises(AssertionError, match=r"expected no job export\(\), but there is 1"):
        await assert_not_dispatched(app, export)
    with pytest.raises(InvalidValue, match="no column 'prioritty'; did you mean priority"):
        await assert_dispatched(app, export, prioritty="high")


def test_times_are_compared_with_now_or_with_a_moment() -> None:
    now = datetime.now(UTC)

    assert within("1h") == now + timedelta(minutes=59)
    assert within("1h") != now + timedelta(minutes=61)
    assert within("1m", of=now - timedelta(days=1)) == now - timedelta(days=1, seconds=30)
    assert within("1h") != "now"
