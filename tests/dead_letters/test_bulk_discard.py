"""Bulk discard: everything that matches and nothing else, audited, also after a crash."""

import json
from typing import Any
from uuid import uuid4

import pytest

from forge import Forge, InvalidValue, JobHandle
from forge.builtin_jobs import bulk_work, discard
from forge.core.payload import encode
from tests.apps import Work
from tests.dead_letters.letters import fill
from tests.faults.kit.process import until


async def test_a_whole_group_is_discarded_and_others_are_not(
    app: Forge, work: Work, psql: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk_work, "SLICE", 50)
    monkeypatch.setattr(discard, "WINDOW", 70)
    ids = await fill(psql, 600)
    others = await fill(psql, 3, place="jobs:other")
    (group, _) = await app.dead_letters.groups()
    await work(app)

    handle = await app.dead_letters.discard_many(
        fingerprint=group.fingerprint, notes="the customer has left", actor="ann"
    )
    report = await handle.result(60)

    assert report == {
        "action": "discard",
        "done": 600,
        "skipped": 0,
        "failed": 0,
        "locked": 0,
        "errors": [],
        "stopped": None,
    }
    left = await app.dead_letters.list(status="pending_review")
    assert sorted(letter.dlq_id for letter in left.items) == others
    letter = await app.dead_letters.get(ids[0])
    assert (letter.reviewed_by, letter.notes) == ("ann", "the customer has left")
    (event,) = await psql.fetch("select * from forge_audit_events")
    assert (event["event"], event["actor"], event["notes"], event["job_id"]) == (
        "job_dlq_bulk_discard_requested",
        "ann",
        "the customer has left",
        handle.id,
    )
    detail = json.loads(event["detail"])
    assert (detail["fingerprint"], detail["letters"]) == (group.fingerprint, 600)


async def test_a_resumed_discard_takes_each_letter_once_and_no_new_or_reviewed_one(
    app: Forge, work: Work, psql: Any
) -> None:
    done, reviewed, *others = await fill(psql, 5)
    handle = await app.dead_letters.discard_many(job_type="flaky", notes="old")
    (new,) = await fill(psql, 1)
    review = "update forge_dead_letters set status = 'discarded', request_id = $2 where dlq_id = $1"
    await psql.execute(review, done, handle.id)
    # An attempt was killed after its first slice.
    known = encode({"after": str(done), "first": "0", "done": 1})
    await psql.execute("update forge_jobs set checkpoint = $2 where id = $1", handle.id, known)

    async with psql.transaction():
        await psql.execute(review, reviewed, None)
        await work(app)
        said = "4 of 5 discarded, 1 locked"
        await until(lambda: _says(handle, said), 30, "it waits for one")
    report = await handle.result(60)

    assert (report["done"], report["skipped"], report["locked"]) == (4, 1, 0)
    left = await app.dead_letters.list(status="pending_review")
    assert [letter.dlq_id for letter in left.items] == [new]
    ours = "select dlq_id from forge_dead_letters where request_id = $1 order by 1"
    assert [row["dlq_id"] for row in await psql.fetch(ours, handle.id)] == [done, *others]


async def test_a_discard_keeps_its_rate_and_stops_when_it_is_cancelled(
    app: Forge, work: Work, psql: Any
) -> None:
    await fill(psql, 100)
    await work(app)
    handle = await app.dead_letters.discard_many(job_type="flaky", notes="old", rate=5)
    await until(lambda: _has_begun(psql), 30, "some are discarded")

    await (await handle.cancel("enough")).result(30)

    async def is_cancelled() -> bool:
        return (await handle.get()).status == "cancelled"

    await until(is_cancelled, 30, "it is cancelled")
    assert (await app.dead_letters.plan()).letters > 50


async def test_the_worker_limits_a_request_to_the_tenant_of_its_job(
    app: Forge, work: Work, psql: Any
) -> None:
    await fill(psql, 2, tenant_id=1)
    theirs = await fill(psql, 2, tenant_id=2)
    handle = await app.dead_letters.discard_many(tenant_id=1, notes="old")
    await psql.execute("update forge_jobs set input = input || '{\"tenant_id\": 2}'")

    await work(app)

    assert (await handle.result(60))["done"] == 2
    left = await app.dead_letters.list(status="pending_review")
    assert sorted(letter.dlq_id for letter in left.items) == theirs


@pytest.mark.parametrize(
    "wrong", [{}, {"notes": " "}, {"notes": "x", "category": "mail"}, {"notes": "x", "rate": 0}]
)
async def test_invalid_request_is_refused(app: Forge, psql: Any, wrong: Any) -> None:
    with pytest.raises(InvalidValue):
        await app.dead_letters.discard_many(fingerprint=str(uuid4()), **wrong)

    assert await psql.fetchval("select count(*) from forge_audit_events") == 0


async def _says(handle: JobHandle, message: str) -> bool:
    return (await handle.get()).progress_message == message


async def _has_begun(psql: Any) -> bool:
    found = "select exists (select from forge_dead_letters where status = 'discarded')"
    return bool(await psql.fetchval(found))
