"""Statistics in the database: merging, pruning and reading."""

import asyncio
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from forge import Forge, InvalidValue
from forge.config.settings import RetentionConfig
from forge.core.histogram import marks_of
from forge.core.job_statistics import Tally
from forge.store import job_statistics
from forge.store.connection.database import Database
from forge.store.job_statistics import Slot, TenantSlot
from forge.worker.prune import Pruner
from tests.apps import app, make_app
from tests.store.placing import Psql

__all__ = ["app", "make_app"]
SHARED = UUID(int=0)
KEPT = RetentionConfig(statistics="30d")  # type: ignore[arg-type]


def tally(completed: int, *seconds: float, failed: int = 0) -> Tally:
    counted = Tally()
    counted.outcomes.update(completed=completed, failed=failed)
    counted.runs = Counter(marks_of(seconds))
    counted.waits = Counter(marks_of(second / 10 for second in seconds))
    return counted


async def fill(
    database: Database, psql: "Psql[Any]", minutes_ago: int, counted: Tally, **of: Any
) -> None:
    """Write what one more worker counted some minutes ago, of a type or of a tenant."""
    now = int(datetime.now(UTC).timestamp())
    if "tenant_id" in of:
        slot: Slot | TenantSlot = TenantSlot(now - now % 300, **of)
    else:
        slot = Slot(now - now % 60, of.get("job_type", "export"), of.get("queue", "default"))
    writer = uuid4()
    written = await database.run(job_statistics.write({slot: counted}, writer))
    assert written.has(slot)
    for table in ("forge_statistics", "forge_tenant_statistics"):
        await psql.execute(
            f"update {table} set minute = minute - make_interval(mins => $1) where writer = $2",
            minutes_ago,
            writer,
        )


async def test_writers_are_merged_after_two_minutes(
    database: Database, psql: "Psql[Any]", app: Forge
) -> None:
    for minutes in (0, 1, 5, 5, 5):
        await fill(database, psql, minutes, tally(2, 0.1, 3.0))
        await fill(database, psql, minutes, tally(2, failed=1), tenant_id=7)
        await fill(database, psql, minutes * 5, tally(2), tenant_id=8)
    before = await app.statistics_by_type()

    for _ in range(2):
        await Pruner(database.link(), KEPT).prune()

    rows = await psql.fetch("select * from forge_statistics order by minute")
    assert [(row["completed"], row["writer"] == SHARED) for row in rows] == [
        (6, True),
        (2, False),
        (2, False),
    ]
    assert (rows[0]["run_counts"], sum(rows[0]["wait_counts"])) == ([3, 3], 6)
    assert await app.statistics_by_type() == before
    of_tenants = await psql.fetch(
        "select completed from forge_tenant_statistics where tenant_id = 8 order by minute"
    )
    assert [row["completed"] for row in of_tenants] == [6, 2, 2]


async def test_a_row_that_comes_late_is_merged_into_the_others(
    database: Database, psql: "Psql[Any]"
) -> None:
    pruner = Pruner(database.link(), KEPT)
    for _ in range(3):
        await fill(database, psql, 10, tally(1, 0.5))
        await pruner.prune()

    (row,) = await psql.fetch("select * from forge_statistics")
    assert (row["completed"], row["run_counts"], row["writer"]) == (3, [3], SHARED)


async def test_minutes_become_hours_after_two_days_and_go_after_their_retention(
    database: Database, psql: "Psql[Any]", app: Forge
) -> None:
    days = 24 * 60
    for minute in range(0, 120, 20):
        await fill(database, psql, 3 * days + minute, tally(1, 0.5))
        await fill(database, psql, 3 * days + minute, tally(1), tenant_id=7)
        await fill(database, psql, days + minute, tally(1, 0.5))
        await fill(database, psql, 31 * days + minute, tally(1))
    await Pruner(database.link(), KEPT, batch=2).prune()

    rows = await psql.fetch(
        "select minute, completed, minute = date_bin('1h', minute, '2000-01-01Z') as is_hour "
        "from forge_statistics order by minute"
    )
    two_days = datetime.now(UTC) - timedelta(days=2)
    hours = [row for row in rows if row["minute"] < two_days]
    assert all(row["is_hour"] for row in hours)
    assert (2 <= len(hours) <= 3, sum(row["completed"] for row in hours)) == (True, 6)
    assert len(rows) - len(hours) == 6
    assert 2 <= await psql.fetchval("select count(*) from forge_tenant_statistics") <= 3
    (total,) = (await app.statistics_by_type(last="30d")).items
    assert total.completed == 12


async def test_rows_that_may_be_merged_already_are_not_written(database: Database) -> None:
    now = int(datetime.now(UTC).timestamp())
    minute, five = now - now % 60, now - now % 300
    slots: dict[Slot | TenantSlot, Tally] = {
        Slot(minute - 180, "export", "default"): tally(1),
        Slot(minute, "export", "default"): tally(1),
        TenantSlot(five - 600, 7): tally(1),
        TenantSlot(five, 7): tally(1),
    }

    written = await database.run(job_statistics.write(slots, uuid4()))

    assert written.minutes == {minute}
    assert written.of_tenants == {five}


async def test_a_merge_loses_nothing_beside_cancels(database: Database, psql: "Psql[Any]") -> None:
    """Both write the row that writers share."""
    cancel = (
        "insert into forge_statistics as shared (minute, job_type, queue, cancelled) "
        "values (date_bin('1m', now() - interval '5m', '2000-01-01Z'), 'export', 'default', 1) "
        "on conflict (minute, job_type, queue, writer) "
        "do update set cancelled = shared.cancelled + excluded.cancelled"
    )
    link, other = database.link(), database.link()

    async def merge() -> None:
        for _ in range(30):
            await fill(database, psql, 5, tally(1))
            await Pruner(link, KEPT).prune()

    async def cancels() -> None:
        async with other.lend() as connection:
            for _ in range(60):
                await connection.execute(cancel)

    await asyncio.gather(merge(), cancels())

    sums = "select sum(completed)::int as completed, sum(cancelled)::int from forge_statistics"
    assert tuple((await psql.fetchrow(sums)).values()) == (30, 60)
    await link.close()
    await other.close()


async def test_statistics_are_read_by_step_type_and_queue(
    database: Database, psql: "Psql[Any]", app: Forge
) -> None:
    await fill(database, psql, 7, tally(95, *[0.1] * 95), job_type="export")
    await fill(database, psql, 5, tally(4, *[20.0] * 4, failed=1), job_type="export")
    await fill(database, psql, 5, tally(10, *[2.0] * 10), job_type="mail", queue="mail")
    await fill(database, psql, 5, tally(7), job_type="forge.canary", queue="forge")

    export = await app.statistics(job_type="export", last="10m")
    all_types = await app.statistics(step="1h", last="3h")
    by_type = await app.statistics_by_type()
    canaries = await app.statistics_by_type(queue="forge")

    assert [point.completed for point in export.series if point.completed] == [95, 4]
    assert sum(point.completed for point in all_types.series) == 109
    first, second = by_type.items
    assert (first.job_type, first.completed, first.failed_percent) == ("export", 99, 1.0)
    assert first.run_ms.p95 == pytest.approx(100, rel=0.1)
    assert first.run_ms.p99 == pytest.approx(20_000, rel=0.1)
    assert first.wait_ms.p50 == pytest.approx(10, rel=0.1)
    assert (second.job_type, second.queue, second.completed) == ("mail", "mail", 10)
    assert [item.completed for item in canaries.items] == [7]


async def test_a_tenant_has_outcomes_alone(
    database: Database, psql: "Psql[Any]", app: Forge
) -> None:
    await fill(database, psql, 10, tally(3, failed=1), tenant_id=7)
    await fill(database, psql, 10, tally(5), tenant_id=8)

    series = await app.statistics(tenant_id=7)
    (total,) = (await app.statistics_by_type(tenant_id=7)).items

    assert series.step == timedelta(minutes=5)
    assert sum(point.completed for point in series.series) == 3
    assert (total.completed, total.failed_percent, total.job_type) == (3, 25.0, None)
    with pytest.raises(InvalidValue, match="leave job_type out"):
        await app.statistics(tenant_id=7, job_type="export")
    with pytest.raises(InvalidValue, match="last or since"):
        await app.statistics(last="1h", since=datetime.now(UTC))


def test_sync_verbs_read_the_same(app: Forge, database_url: str) -> None:
    with pytest.raises(InvalidValue, match="whole minutes"):
        app.sync.statistics(step="30s")
    assert app.sync.statistics_by_type().items == []
    assert len(app.sync.statistics(last="5m").series) == 6
    app.sync.close()
