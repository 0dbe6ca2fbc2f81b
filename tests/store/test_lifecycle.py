"""The database enforces the lifecycle: every verb, every status, every role."""

import re
from collections.abc import Awaitable, Callable
from itertools import product
from typing import Any, NamedTuple
from uuid import UUID, uuid4

import asyncpg
import pytest

from forge.core.job import Job
from forge.core.lifecycle import FINAL, LIFECYCLE, Status, Verb, allowed_moves
from forge.core.outcome import Completion, Settlement
from forge.store import jobs
from forge.store.connection.database import Database
from forge.store.migrate import all_migrations
from forge.store.workers import Registration
from tests.store.placing import Psql, claiming, insert, placed, registered

WORKER = uuid4()
MOVE = """update forge_jobs set status = $2, lease = lease + $3, worker_id = $4 where id = $1"""


async def test_a_person_in_psql_can_make_exactly_the_moves_of_the_table(
    psql: "Psql[Any]",
) -> None:
    placed_at = {status: await placed(psql, status, worker=WORKER) for status in Status}

    accepted: dict[tuple[Status, Status], set[int]] = {}
    for start, end, growth in product(Status, Status, (-1, 0, 1, 2)):
        if await _is_accepted(psql, MOVE, placed_at[start], end, growth, WORKER):
            accepted.setdefault((start, end), set()).add(growth)

    assert accepted == allowed_moves()


def test_the_moves_written_in_the_migration_are_those_of_the_table() -> None:
    script = "".join(migration.sql for migration in all_migrations())
    guard = script.partition("create function forge_forbids_move")[2]
    listed = guard.partition("array[")[2].partition("]")[0]

    written = {
        (Status(start), Status(end), int(growth))
        for start, growth, end in re.findall(r"([a-z_]+) (\d) ([a-z_]+)", listed)
    }

    assert written == {(*pair, growth) for pair, by in allowed_moves().items() for growth in by}


@pytest.mark.parametrize("status", [status for status in Status if status != "pending"])
async def test_a_job_begins_as_pending_and_nothing_else(psql: "Psql[Any]", status: Status) -> None:
    with pytest.raises(asyncpg.CheckViolationError, match=f"cannot begin with status {status}"):
        await insert(psql, status=status)


@pytest.mark.parametrize(
    ("column", "value"),
    [("lease", 1), ("attempts", 1), ("priority", 51), ("priority", 101), ("max_attempts", 0)],
)
async def test_a_job_begins_unclaimed_and_with_values_that_make_sense(
    psql: "Psql[Any]", column: str, value: int
) -> None:
    with pytest.raises(asyncpg.CheckViolationError) as refused:
        await insert(psql, **{column: value})

    assert "insert it as pending" in (refused.value.hint or "")


@pytest.mark.parametrize("status", sorted(FINAL))
async def test_a_final_status_is_never_left(psql: "Psql[Any]", status: Status) -> None:
    job_id = await placed(psql, status, worker=WORKER)

    for end, growth in product(set(Status) - {status}, (0, 1)):
        with pytest.raises(asyncpg.CheckViolationError) as refused:
            await psql.execute(MOVE, job_id, end, growth, WORKER)
        assert "never revived" in (refused.value.hint or "")


@pytest.mark.parametrize("end", ["failed", "completed", "retry"])
async def test_a_queued_job_neither_fails_nor_completes_nor_waits_for_a_retry(
    psql: "Psql[Any]", end: str
) -> None:
    job_id = await insert(psql)

    with pytest.raises(asyncpg.CheckViolationError, match=f"cannot go from pending .* to {end}"):
        await psql.execute("update forge_jobs set status = $2 where id = $1", job_id, end)


async def test_a_claim_without_a_worker_is_refused(psql: "Psql[Any]") -> None:
    job_id = await insert(psql)

    assert not await _is_accepted(psql, MOVE, job_id, Status.CLAIMED, 1, None)
    assert not await _is_accepted(psql, MOVE, job_id, Status.RUNNING, 1, None)


async def test_a_claim_that_keeps_the_lease_is_refused(psql: "Psql[Any]") -> None:
    job_id = await insert(psql)

    assert not await _is_accepted(psql, MOVE, job_id, Status.CLAIMED, 0, WORKER)
    assert not await _is_accepted(psql, MOVE, job_id, Status.RUNNING, 0, WORKER)


@pytest.mark.parametrize("status", [Status.RETRY, Status.RUNNING, Status.COMPLETED])
async def test_a_lease_never_shrinks(psql: "Psql[Any]", status: Status) -> None:
    job_id = await placed(psql, status, worker=WORKER)

    with pytest.raises(asyncpg.CheckViolationError, match=r"\(lease 1\) to .* \(lease 0\)"):
        await psql.execute("update forge_jobs set lease = 0 where id = $1", job_id)


async def test_what_was_claimed_once_keeps_the_name_of_a_worker(psql: "Psql[Any]") -> None:
    job_id = await placed(psql, Status.RUNNING, worker=WORKER)

    with pytest.raises(asyncpg.CheckViolationError):
        await psql.execute("update forge_jobs set worker_id = null where id = $1", job_id)


async def test_a_priority_between_the_five_is_refused_later_too(psql: "Psql[Any]") -> None:
    job_id = await insert(psql)

    with pytest.raises(asyncpg.CheckViolationError) as refused:
        await psql.execute("update forge_jobs set priority = 60 where id = $1", job_id)

    assert "0, 25, 50, 75, 100" in (refused.value.hint or "")


class Given(NamedTuple):
    """A job in some status, and a worker that would carry out a verb on it."""

    database: Database
    worker: Registration
    id: UUID
    lease: int
    lane: int


Act = Callable[[Given], Awaitable[list[UUID]]]


@pytest.mark.parametrize("status", list(Status))
@pytest.mark.parametrize("verb", list(Verb))
async def test_each_verb_follows_the_lifecycle_table_or_changes_nothing(
    psql: "Psql[Any]", database: Database, verb: Verb, status: Status
) -> None:
    given = await _given(psql, database, status)

    moved = await ACTS[verb](given)

    expected = LIFECYCLE.get((status, verb))
    assert moved == ([given.id] if expected else [])
    assert await _status(psql, given.id) == (expected or status)


@pytest.mark.parametrize(("status", "verb"), LIFECYCLE)
async def test_each_verb_counts_its_change_in_the_version(
    psql: "Psql[Any]", database: Database, status: Status, verb: Verb
) -> None:
    given = await _given(psql, database, status)
    before = await psql.fetchval("select version from forge_jobs")
    await psql.execute("alter table forge_jobs disable trigger forge_jobs_version")

    await ACTS[verb](given)

    assert await psql.fetchval("select version from forge_jobs") == before + 1


@pytest.mark.parametrize("status", [Status.PENDING, Status.RETRY])
async def test_a_claim_with_a_free_slot_starts_at_once(
    psql: "Psql[Any]", database: Database, status: Status
) -> None:
    given = await _given(psql, database, status)

    (job,) = await database.run(claiming([given.lane], given.worker, 1, start=True))

    assert (job.id, job.lease) == (given.id, given.lease + 1)
    assert await _status(psql, given.id) is Status.RUNNING


@pytest.mark.parametrize("verb", [Verb.START, Verb.COMPLETE, Verb.RETRY, Verb.BURY, Verb.RELEASE])
async def test_what_a_worker_writes_with_an_old_lease_changes_nothing(
    psql: "Psql[Any]", database: Database, verb: Verb
) -> None:
    status = Status.CLAIMED if verb is Verb.START else Status.RUNNING
    given = await _given(psql, database, status)
    before = await psql.fetchrow("select * from forge_jobs")

    moved = await ACTS[verb](given._replace(lease=given.lease - 1))

    assert moved == []
    assert await psql.fetchrow("select * from forge_jobs") == before
    assert await psql.fetchval("select count(*) from forge_attempts") == 0
    assert await psql.fetchval("select count(*) from forge_dead_letters") == 0


async def test_release_and_snooze_give_the_attempt_back_and_retry_does_not(
    psql: "Psql[Any]", database: Database
) -> None:
    left = {}
    for verb in (Verb.RELEASE, Verb.SNOOZE, Verb.RETRY):
        given = await _given(psql, database, Status.RUNNING)
        await ACTS[verb](given)
        left[verb] = await psql.fetchval("select attempts from forge_jobs where id = $1", given.id)

    assert left == {Verb.RELEASE: 0, Verb.SNOOZE: 0, Verb.RETRY: 1}


@pytest.mark.parametrize("status", [Status.RUNNING, Status.CLAIMED])
async def test_a_rescue_gives_the_attempt_back_and_suspects_what_was_running(
    psql: "Psql[Any]", database: Database, status: Status
) -> None:
    given = await _given(psql, database, status)
    was_running = status is Status.RUNNING

    await ACTS[Verb.RESCUE](given)

    job = await psql.fetchrow("select * from forge_jobs")
    assert (job["attempts"], job["crashes"], job["lease"]) == (0, 1, given.lease)
    assert job["suspect"] is was_running
    assert await psql.fetchval("select count(*) from forge_attempts") == was_running


async def test_a_job_whose_owner_lives_is_not_rescued(
    psql: "Psql[Any]", database: Database
) -> None:
    given = await _given(psql, database, Status.RUNNING)

    found = await database.run(
        jobs.rescue([given.worker.id], None, dead_after=60, stale_after=0, limit=10)
    )

    assert list(found) == []
    assert await _status(psql, given.id) is Status.RUNNING


async def _given(psql: "Psql[Any]", database: Database, status: Status) -> Given:
    worker = await registered(database)
    job_id = await placed(psql, status, worker=worker.id)
    row = await psql.fetchrow(
        "select lease, forge_lane(job_type, queue, worker_capability, priority) as lane "
        "from forge_jobs where id = $1",
        job_id,
    )
    return Given(database, worker, job_id, row["lease"], row["lane"])


async def _is_accepted(psql: "Psql[Any]", sql: str, *args: Any) -> bool:
    """Try something and take it back."""
    attempt = psql.transaction()
    await attempt.start()
    try:
        await psql.execute(sql, *args)
    except asyncpg.CheckViolationError:
        return False
    finally:
        await attempt.rollback()
    return True


async def _status(psql: "Psql[Any]", job_id: UUID) -> Status:
    return Status(await psql.fetchval("select status from forge_jobs where id = $1", job_id))


async def _claim(given: Given) -> list[UUID]:
    taken = await given.database.run(claiming([given.lane], given.worker, 10, start=False))
    return [job.id for job in taken]


async def _start(given: Given) -> list[UUID]:
    job = Job._make([given.id, given.lease, *[None] * (len(Job._fields) - 2)])
    return await given.database.run(jobs.start([job]))


async def _complete(given: Given) -> list[UUID]:
    return await given.database.run(jobs.complete([Completion(given.id, given.lease, None)]))


async def _rescue(given: Given) -> list[UUID]:
    found = await given.database.run(
        jobs.rescue([given.worker.id], None, dead_after=0, stale_after=0, limit=10)
    )
    return [row["id"] for row in found]


async def _cancel(given: Given) -> list[UUID]:
    return [row["id"] for row in await given.database.run(jobs.cancel([given.id], None, None))]


def _settle(verb: Verb, **fields: Any) -> Act:
    sources = [start for start, known in LIFECYCLE if known is verb]
    (end,) = {LIFECYCLE[start, verb] for start in sources}

    async def act(given: Given) -> list[UUID]:
        settlement = Settlement(given.id, given.lease, " ".join(sources), end, **fields)
        return await given.database.run(jobs.settle([settlement]))

    return act


ACTS: dict[Verb, Act] = {
    Verb.CLAIM: _claim,
    Verb.START: _start,
    Verb.COMPLETE: _complete,
    Verb.RETRY: _settle(Verb.RETRY, delay=5.0, message="no", outcome="retry"),
    Verb.SNOOZE: _settle(Verb.SNOOZE, delay=5.0, given_back=1),
    Verb.FAIL: _settle(Verb.FAIL, message="no", outcome="failed"),
    Verb.BURY: _settle(Verb.BURY, message="no", outcome="dead_letter"),
    Verb.RELEASE: _settle(Verb.RELEASE, given_back=1),
    Verb.RESCUE: _rescue,
    Verb.CANCEL: _cancel,
}
