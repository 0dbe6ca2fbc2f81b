"""Partial compaction of dead letter counts hides no letter."""

from typing import Any

import pytest

from forge import Forge
from forge.core.dead_letter import LetterFilter
from forge.store import dead_letters
from tests.apps import Work
from tests.dead_letters.conftest import Flaky
from tests.dead_letters.letters import fill

UNDER_REVIEW = LetterFilter(status="pending_review")
LOCK_FIRST = """
    select from forge_dead_letter_counts
    where ctid = (select min(ctid) from forge_dead_letter_counts)
    for update
"""


async def _discard_first_of_two(app: Forge, psql: Any, place: str = "jobs:run") -> int:
    """Leave the counts of an added and reviewed letter, and of a newer one."""
    (old,) = await fill(psql, 1, place=place)
    await app.dead_letters.discard(old, notes="x")
    (new,) = await fill(psql, 1, place=place)
    return new


async def test_a_bulk_takes_the_newest_letters_after_a_partial_compaction(
    app: Forge, flaky: Flaky, work: Work, psql: Any
) -> None:
    flaky.broken = False
    new = await _discard_first_of_two(app, psql)
    database = await (await app.session()).database()
    async with psql.transaction():
        await psql.execute(LOCK_FIRST)
        assert (await database.run(dead_letters.compact(1000))).taken == 3
    await work(app)

    request = await app.dead_letters.reprocess_many(rate=1000, canary=0)
    report = await request.result(60)

    assert report["reprocessed"] == 1
    assert (await app.dead_letters.get(new)).status == "reprocessed"


async def test_a_group_shows_its_newest_letter_after_a_partial_compaction(
    app: Forge, psql: Any
) -> None:
    new = await _discard_first_of_two(app, psql)
    database = await (await app.session()).database()
    (before,) = await app.dead_letters.groups()
    async with psql.transaction():
        await psql.execute(LOCK_FIRST)
        await database.run(dead_letters.compact(1000))

    (after,) = await app.dead_letters.groups()

    assert after == before
    assert after.sample == new


@pytest.mark.parametrize("limit", [1, 2, 3, 5])
async def test_compaction_works_with_any_batch_size(app: Forge, psql: Any, limit: int) -> None:
    database = await (await app.session()).database()
    for place in ("jobs:run", "jobs:other"):
        for _ in range(3):
            await _discard_first_of_two(app, psql, place)
        before = await database.run(dead_letters.count(UNDER_REVIEW))
        groups = await app.dead_letters.groups(status=None)

        for _ in range(12):
            await database.run(dead_letters.compact(limit))
            assert await database.run(dead_letters.count(UNDER_REVIEW)) == before
            assert await app.dead_letters.groups(status=None) == groups
    await database.run(dead_letters.compact(1000))
    assert await psql.fetchval("select count(*) from forge_dead_letter_counts") == 4


async def test_groups_without_letters_keep_no_counts(app: Forge, psql: Any) -> None:
    new = await _discard_first_of_two(app, psql)
    database = await (await app.session()).database()
    async with psql.transaction():
        await psql.execute(LOCK_FIRST)
        await database.run(dead_letters.compact(1000))
    await psql.execute("delete from forge_dead_letters where dlq_id <= $1", new)

    await database.run(dead_letters.compact(1000))

    assert await psql.fetchval("select count(*) from forge_dead_letter_counts") == 0
