"""Bulk discard: everything that matches and nothing else, audited, also after a crash."""

from typing import Any
from uuid import uuid4

import pytest

from forge import Forge, InvalidValue
from forge.builtin_jobs import discard
from forge.core.payload import encode
from tests.apps import Work
from tests.dead_letters.letters import fill


async def test_a_whole_group_is_discarded_and_others_are_not(
    app: Forge, work: Work, psql: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(discard, "BATCH", 50)  # so that more than one attempt is needed
    ids = await fill(psql, 600)
    others = await fill(psql, 3, place="jobs:other")
    (group, _) = await app.dead_letters.groups()
    await work(app)

    handle = await app.dead_letters.discard_many(
        fingerprint=group.fingerprint, notes="the customer has left", actor="ann"
    )
    report = await handle.result(60)

    assert report == {"discarded": 600, "skipped": 0}
    left = await app.dead_letters.list(status="pending_review")
    assert sorted(letter.dlq_id for letter in left.items) == others
    letter = await app.dead_letters.get(ids[0])
    assert (letter.reviewed_by, letter.notes) == ("ann", "the customer has left")
    events = await psql.fetch(
        "select event, count(*), count(distinct dlq_id) as letters from forge_audit_events "
        "where actor = 'ann' and notes = 'the customer has left' group by 1 order by min(id)"
    )
    assert [tuple(row) for row in events] == [
        ("job_dlq_bulk_discard_requested", 1, 0),
        ("job_dlq_discarded", 600, 600),
        ("job_dlq_bulk_discard_finished", 1, 0),
    ]


async def test_a_resumed_discard_counts_what_the_killed_attempt_did(
    app: Forge, work: Work, psql: Any
) -> None:
    ids = await fill(psql, 5)
    handle = await app.dead_letters.discard_many(job_type="flaky", notes="old")
    # The first attempt was killed between two statements; a person reviewed one of its batch.
    done = "update forge_dead_letters set status = 'discarded', request_id = $2 where dlq_id = $1"
    await psql.execute(done, ids[0], handle.id)
    await psql.execute(done, ids[1], None)
    await psql.execute(
        "update forge_jobs set checkpoint = $2 where id = $1",
        handle.id,
        encode({"batch": ids[:3], "discarded": 10}),
    )

    await work(app)

    assert await handle.result(60) == {"discarded": 14, "skipped": 1}


async def test_the_worker_limits_a_request_to_the_tenant_of_its_job(
    app: Forge, work: Work, psql: Any
) -> None:
    await fill(psql, 2, tenant_id=1)
    theirs = await fill(psql, 2, tenant_id=2)
    handle = await app.dead_letters.discard_many(tenant_id=1, notes="old")
    await psql.execute("update forge_jobs set input = input || '{\"tenant_id\": 2}'")

    await work(app)

    assert (await handle.result(60))["discarded"] == 2
    left = await app.dead_letters.list(status="pending_review")
    assert sorted(letter.dlq_id for letter in left.items) == theirs


@pytest.mark.parametrize("wrong", [{}, {"notes": " "}, {"notes": "x", "category": "mail"}])
async def test_invalid_request_is_refused(app: Forge, psql: Any, wrong: Any) -> None:
    with pytest.raises(InvalidValue):
        await app.dead_letters.discard_many(fingerprint=str(uuid4()), **wrong)

    assert await psql.fetchval("select count(*) from forge_audit_events") == 0
