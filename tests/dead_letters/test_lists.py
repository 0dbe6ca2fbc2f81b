"""Lists, groups and counts of dead letters match the table."""

from datetime import timedelta
from typing import Any

import pytest

from forge import Forge, InvalidValue
from forge.store import dead_letters
from tests.dead_letters.letters import fill


@pytest.fixture
async def filled(app: Forge, psql: Any) -> Forge:
    """Dead letters of two tenants and of none, of four causes."""
    await fill(psql, 5, "mail", category="notifications", tenant_id=1, error_class="transient")
    await fill(psql, 3, "mail", category="notifications", tenant_id=2, error_class="transient")
    await fill(psql, 4, "mail", category="notifications", tenant_id=1, place="jobs:other")
    await fill(psql, 2, "sync", category="sync", tenant_id=2, error_class="rate_limited")
    await fill(psql, 6, "plain")
    return app


FILTERS: list[tuple[dict[str, Any], int]] = [
    ({}, 20),
    ({"status": "pending_review"}, 20),
    ({"status": "discarded"}, 0),
    ({"tenant_id": 1}, 9),
    ({"tenant_id": 2, "status": "pending_review"}, 5),
    ({"job_type": "mail"}, 12),
    ({"job_type": "mail", "tenant_id": 1}, 9),
    ({"category": "sync"}, 2),
    ({"category": "sync", "tenant_id": 1}, 0),
    ({"error_class": "transient"}, 8),
    ({"error_class": "transient", "job_type": "sync"}, 0),
]


@pytest.mark.parametrize(("wanted", "count"), FILTERS)
async def test_a_list_applies_its_filter_on_every_page(
    filled: Forge, wanted: dict[str, Any], count: int
) -> None:
    found, cursor = [], None
    while True:
        page = await filled.dead_letters.list(**wanted, before=cursor, limit=3)
        found += page.items
        cursor = page.next_cursor
        if cursor is None:
            break

    ids = [letter.dlq_id for letter in found]
    assert len(ids) == len(set(ids)) == count == page.total_count
    assert ids == sorted(ids, reverse=True)
    for name, value in wanted.items():
        assert {getattr(letter, name) for letter in found} <= {value}


async def test_groups_show_causes_with_counts_and_a_sample(filled: Forge) -> None:
    groups = await filled.dead_letters.groups()

    found = [(g.job_type, g.error_class, g.place, g.letters) for g in groups]
    assert sorted(found, key=str) == sorted(
        [
            ("mail", "transient", "jobs:run", 8),
            ("mail", None, "jobs:other", 4),
            ("sync", "rate_limited", "jobs:run", 2),
            ("plain", None, "jobs:run", 6),
        ],
        key=str,
    )
    assert [g.letters for g in groups] == [8, 6, 4, 2]
    first = groups[0]
    assert first.first_seen <= first.last_seen
    sample = await filled.dead_letters.get(first.sample)
    assert (sample.fingerprint, sample.error_message) == (first.fingerprint, first.error_message)
    of_tenant = await filled.dead_letters.groups(tenant_id=2)
    assert [(g.job_type, g.letters) for g in of_tenant] == [("mail", 3), ("sync", 2)]


async def test_statistics_count_by_status_category_type_and_class(filled: Forge) -> None:
    some = (await filled.dead_letters.list(job_type="sync")).items
    await filled.dead_letters.discard(some[0].dlq_id, notes="x")

    counted = await filled.dead_letters.statistics()

    assert counted.total == 20
    assert counted.by_status == {"pending_review": 19, "discarded": 1}
    assert counted.by_category == {"notifications": 12, "sync": 2, "none": 6}
    assert counted.by_type == {"mail": 12, "sync": 2, "plain": 6}
    assert counted.by_error_class == {"transient": 8, "rate_limited": 2, "none": 10}
    assert (await filled.dead_letters.statistics(tenant_id=2)).total == 5


async def test_counts_are_the_same_after_compaction(filled: Forge, psql: Any) -> None:
    for letter in (await filled.dead_letters.list(job_type="sync")).items:
        await filled.dead_letters.discard(letter.dlq_id, notes="x")
    database = await (await filled.session()).database()
    before = await filled.dead_letters.statistics(), await filled.dead_letters.groups(status=None)

    compacted = await database.run(dead_letters.compact(1000))

    after = await filled.dead_letters.statistics(), await filled.dead_letters.groups(status=None)
    assert after == before
    left = await psql.fetchval("select count(*) from forge_dead_letter_counts")
    assert compacted.taken > compacted.kept == left == 5
    await psql.execute("delete from forge_dead_letters")
    assert (await filled.dead_letters.statistics()).total == 0
    await database.run(dead_letters.compact(1000))
    assert await psql.fetchval("select count(*) from forge_dead_letter_counts") == 0


@pytest.mark.parametrize(
    "wrong", [{"status": "open"}, {"category": "none"}, {"limit": 0}, {"limit": 10_001}]
)
async def test_an_invalid_filter_is_rejected(app: Forge, wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue):
        await app.dead_letters.list(**wrong)


# The number of a dead letter that is so old, as forge_new_number() makes it.
OLD = """update forge_dead_letters
set dlq_id = (((extract(epoch from now() - $2::interval) - 1577836800) * 1000000)::bigint << 2)
             + dlq_id % 4096
where dlq_id = any ($1)"""


@pytest.mark.parametrize(
    ("tenant", "counts"), [(None, [0, 2, 0, 6]), (1, [0, 2, 0, 3]), (9, [0, 0, 0, 0])]
)
async def test_activity_counts_each_cause_per_step(
    filled: Forge, psql: Any, tenant: int | None, counts: list[int]
) -> None:
    (cause, *_) = await filled.dead_letters.groups(job_type="mail")
    letters = (await filled.dead_letters.list(fingerprint=cause.fingerprint, tenant_id=1)).items
    await psql.execute(OLD, [letter.dlq_id for letter in letters[:2]], timedelta(days=2))
    causes = [cause.fingerprint, "unknown"]

    found = await filled.dead_letters.activity(causes, step="1d", steps=4, tenant_id=tenant)

    assert found is not None
    assert found.counts == {cause.fingerprint: counts, "unknown": [0, 0, 0, 0]}
    assert (found.began.hour, found.step) == (0, timedelta(days=1))
    assert await filled.dead_letters.activity([], step="1d") is None
    reviewed = await filled.dead_letters.activity(causes[:1], status="discarded", steps=1)
    assert reviewed is not None
    assert reviewed.counts == {cause.fingerprint: [0]}


@pytest.mark.parametrize("wrong", [{"step": "1s"}, {"step": "soon"}, {"steps": 0}, {"steps": 61}])
async def test_activity_of_an_invalid_period_is_refused(app: Forge, wrong: Any) -> None:
    with pytest.raises(InvalidValue):
        await app.dead_letters.activity(["x"], **wrong)
