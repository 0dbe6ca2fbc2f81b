"""Retention: what is over is forgotten after its time, and nothing else is."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from forge import Forge, JobContext
from forge.config.settings import RetentionConfig
from forge.core.lifecycle import FINAL, Status
from forge.store.connection.database import Database
from forge.worker.prune import Pruner
from tests.dead_letters.letters import fill
from tests.store.placing import placed

WEEK = RetentionConfig(completed="7d", failed="30d", idempotency_keys="30d", audit="365d")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("status", "days", "goes"),
    [
        ("completed", 8, True),
        ("completed", 6, False),
        ("failed", 31, True),
        ("failed", 29, False),
        ("cancelled", 31, True),
        ("cancelled", 29, False),
        ("dead_letter", 31, True),
        ("dead_letter", 29, False),
    ],
)
async def test_a_final_job_is_kept_as_long_as_its_status_says(
    psql: Any, database: Database, status: str, days: int, goes: bool
) -> None:
    await _old(psql, Status(status), days)

    gone, _ = await Pruner(database.link(), WEEK).prune()

    assert gone == int(goes)
    assert await psql.fetchval("select count(*) from forge_jobs") == int(not goes)


@pytest.mark.parametrize("status", sorted(set(Status) - FINAL))
async def test_a_job_that_is_not_over_is_kept_however_old(
    psql: Any, database: Database, status: Status
) -> None:
    await _old(psql, status, 4000)

    assert (await Pruner(database.link(), WEEK).prune())[0] == 0


async def test_an_old_job_that_ended_only_now_is_kept(psql: Any, database: Database) -> None:
    await _old(psql, Status.COMPLETED, 100)
    await psql.execute("update forge_jobs set completed_at = now()")

    assert (await Pruner(database.link(), WEEK).prune())[0] == 0


async def test_the_attempts_of_a_job_go_with_it(psql: Any, database: Database) -> None:
    old, young = await _old(psql, Status.FAILED, 40), await _old(psql, Status.FAILED, 1)
    for job_id in (old, young):
        await psql.execute(
            "insert into forge_attempts (job_id, lease, attempt, outcome) values ($1, 1, 1, 'x')",
            job_id,
        )

    await Pruner(database.link(), WEEK).prune()

    assert await psql.fetchval("select array_agg(job_id) from forge_attempts") == [young]


@pytest.mark.parametrize(
    ("review", "goes"), [("pending_review", False), ("reprocessed", True), ("discarded", True)]
)
async def test_a_job_under_review_is_kept_however_old(
    psql: Any, database: Database, review: str, goes: bool
) -> None:
    job_id = await _old(psql, Status.DEAD_LETTER, 400)
    await psql.execute(
        "insert into forge_dead_letters (job_id, job_type, queue, priority, payload, "
        "payload_version, attempt_count, original_created_at, original_scheduled_at, status) "
        "select id, job_type, queue, priority, input, '1.0', 1, created_at, scheduled_at, $2 "
        "from forge_jobs where id = $1",
        job_id,
        review,
    )

    assert (await Pruner(database.link(), WEEK).prune())[0] == int(goes)


async def test_pruning_goes_on_in_steps_until_nothing_old_is_left(
    psql: Any, database: Database
) -> None:
    for _ in range(10):
        await _old(psql, Status.COMPLETED, 20)
    kept = [await _old(psql, Status.RUNNING, 20) for _ in range(5)]

    gone, _ = await Pruner(database.link(), WEEK, batch=4).prune()

    assert gone == 10
    found = await psql.fetch("select id from forge_jobs")
    assert {row["id"] for row in found} == set(kept)


async def test_a_busy_table_is_pruned_a_bounded_number_of_steps_at_a_time(
    psql: Any, database: Database
) -> None:
    for _ in range(10):
        await _old(psql, Status.COMPLETED, 20)
    pruner = Pruner(database.link(), WEEK, batch=2, most_steps=3)

    assert [await pruner.prune(), await pruner.prune()] == [(6, False), (4, True)]


async def test_pruning_goes_on_round_by_round_until_nothing_is_overdue(
    psql: Any, database: Database
) -> None:
    for _ in range(20):
        job_id = await _old(psql, Status.COMPLETED, 40)
        await _key(psql, str(job_id), job_id, days=40)
    pruner = Pruner(database.link(), WEEK, batch=2, most_steps=2)

    gone = await pruner.catch_up(lambda: True, asyncio.Event())

    assert gone == 20
    assert await psql.fetchval("select count(*) from forge_jobs") == 0
    assert await psql.fetchval("select count(*) from forge_idempotency_keys") == 0


OVERDUE = {
    "forge_idempotency_keys": "insert into forge_idempotency_keys (key, job_id, created_at) "
    "select n, forge_uuidv7(), now() - interval '2 years' from generate_series(1, 20) as n",
    "forge_audit_events": "insert into forge_audit_events (event, created_at) "
    "select 'old', now() - interval '2 years' from generate_series(1, 20) as n",
    "forge_dead_letters": "update forge_dead_letters "
    "set status = 'discarded', reviewed_at = now() - interval '2 years', notes = 'old'",
}


@pytest.mark.parametrize("table", OVERDUE)
async def test_pruning_goes_on_while_another_table_has_overdue_rows(
    psql: Any, database: Database, table: str
) -> None:
    await fill(psql, 20)
    await psql.execute(OVERDUE[table])
    pruner = Pruner(database.link(), WEEK, batch=2, most_steps=2)

    assert await pruner.catch_up(lambda: True, asyncio.Event()) == 0

    assert await psql.fetchval(f"select count(*) from {table}") == 0


async def test_pruning_goes_on_until_the_counts_of_dead_letters_are_summed_up(
    psql: Any, database: Database
) -> None:
    for _ in range(20):
        await fill(psql, 1)
    for place in ("jobs:a", "jobs:b", "jobs:c"):
        await fill(psql, 1, place=place)
    pruner = Pruner(database.link(), WEEK, most_counts=8)

    await pruner.catch_up(lambda: True, asyncio.Event())

    assert await psql.fetchval("select count(*) from forge_dead_letter_counts") == 4


async def test_counts_of_many_causes_are_no_reason_to_go_on(psql: Any, database: Database) -> None:
    for place in range(20):
        await fill(psql, 1, place=f"jobs:{place}")
    pruner = Pruner(database.link(), WEEK, most_counts=8)

    assert await pruner.prune() == (0, True)


async def test_pruning_ends_with_its_worker_and_where_another_takes_over(
    psql: Any, database: Database
) -> None:
    for _ in range(20):
        await _old(psql, Status.COMPLETED, 20)
    pruner = Pruner(database.link(), WEEK, batch=2, most_steps=2)
    stop, turns = asyncio.Event(), iter([True, True, False])

    assert await pruner.catch_up(lambda: next(turns), stop) == 8
    stop.set()
    assert await pruner.catch_up(lambda: True, stop) == 4


@pytest.mark.parametrize(
    "job_id", [UUID(int=0xFF << 120), UUID("f47ac10b-58cc-4372-a567-0e02b2c3d479")]
)
async def test_a_job_whose_id_does_not_tell_its_time_is_pruned_by_its_end(
    psql: Any, database: Database, job_id: UUID
) -> None:
    old, young = job_id, UUID(int=job_id.int + 1)
    for made, days in ((old, 20), (young, 1)):
        await placed(psql, Status.COMPLETED, worker=uuid4(), id=made)
        ended = datetime.now(UTC) - timedelta(days=days)
        await psql.execute("update forge_jobs set completed_at = $2 where id = $1", made, ended)

    gone, is_done = await Pruner(database.link(), WEEK).prune()

    assert (gone, is_done) == (1, True)
    assert await psql.fetchval("select array_agg(id) from forge_jobs") == [young]


async def test_an_id_of_a_fast_clock_is_pruned_by_its_end(psql: Any, database: Database) -> None:
    await _old(psql, Status.COMPLETED, -400)
    await psql.execute("update forge_jobs set completed_at = now() - interval '20 days'")

    assert (await Pruner(database.link(), WEEK).prune())[0] == 1


async def test_what_is_to_be_kept_for_ever_is(psql: Any, database: Database) -> None:
    await _old(psql, Status.COMPLETED, 4000)
    await _old(psql, Status.FAILED, 4000)

    never = RetentionConfig(completed=None, failed=None, idempotency_keys=None, audit=None)
    assert (await Pruner(database.link(), never).prune())[0] == 0
    only_failed = RetentionConfig(completed=None, failed="30d")  # type: ignore[arg-type]
    assert (await Pruner(database.link(), only_failed).prune())[0] == 1
    assert await psql.fetchval("select status from forge_jobs") == "completed"


async def test_a_key_outlives_its_pruned_job(app: Forge, psql: Any, database: Database) -> None:
    @app.job
    async def pay(ctx: JobContext) -> None: ...

    job_id = await _old(psql, Status.COMPLETED, 20)
    await _key(psql, "k", job_id, days=20)
    assert (await Pruner(database.link(), WEEK).prune())[0] == 1

    again = await pay.dispatch(idempotency_key="k")

    assert again.deduplicated
    assert again.id == job_id
    assert await psql.fetchval("select count(*) from forge_jobs") == 0


@pytest.mark.parametrize(
    ("status", "days", "goes"),
    [("completed", 31, True), ("completed", 29, False), ("pending", 400, False), (None, 31, True)],
)
async def test_a_key_is_forgotten_after_its_time_unless_its_job_is_not_over(
    psql: Any, database: Database, status: str | None, days: int, goes: bool
) -> None:
    job_id = uuid4() if status is None else await _old(psql, Status(status), 1)
    for tenant in (None, 7):
        await _key(psql, "k", job_id, days=days, tenant=tenant)

    await Pruner(database.link(), WEEK).prune()

    assert await psql.fetchval("select count(*) from forge_idempotency_keys") == 2 * (not goes)


async def test_audit_rows_go_after_their_time_where_there_is_one(
    psql: Any, database: Database
) -> None:
    await psql.execute(
        "insert into forge_audit_events (event, created_at) "
        "values ('old', now() - interval '2 years'), ('young', now())"
    )

    await Pruner(database.link(), RetentionConfig()).prune()
    assert await psql.fetchval("select count(*) from forge_audit_events") == 2

    await Pruner(database.link(), WEEK).prune()
    assert await psql.fetchval("select array_agg(event) from forge_audit_events") == ["young"]


async def _old(psql: Any, status: Status, days: int) -> UUID:
    """Place a job that was made, and ended, this many days ago."""
    at = datetime.now(UTC) - timedelta(days=days)
    milliseconds = int(at.timestamp() * 1000)
    old_id = UUID(int=milliseconds << 80 | 7 << 76 | uuid4().int & ((1 << 76) - 1))
    job_id = await placed(psql, status, worker=uuid4(), id=old_id, created_at=at)
    ends = {Status.COMPLETED: "completed_at", Status.CANCELLED: "cancelled_at"}
    column = ends.get(status, "failed_at")
    if status in FINAL:
        await psql.execute(f"update forge_jobs set {column} = $2 where id = $1", job_id, at)
    return job_id


async def _key(psql: Any, key: str, job_id: UUID, *, days: int, tenant: int | None = None) -> None:
    await psql.execute(
        "insert into forge_idempotency_keys (tenant_id, key, job_id, created_at) "
        "values ($1, $2, $3, now() - make_interval(days => $4))",
        tenant,
        key,
        job_id,
        days,
    )
