"""A type whose category has changed: each dead letter keeps its own category."""

from typing import Any

import pytest

from forge import DeadLetter, Forge, JobContext, JobFailed, NonRetryable
from tests.apps import MakeApp, Work
from tests.jobs.payload_rules.ways import PAYLOAD

CATEGORIES = ("ingestion", "sync", None)
LETTERS = {"ingestion": 3, "sync": 2, None: 1}


async def _fail(ctx: JobContext, input: dict[str, Any]) -> None:
    raise NonRetryable("no luck")


@pytest.fixture
async def apps(make_app: MakeApp, work: Work) -> dict[str | None, Forge]:
    """Apps whose type `mail` fails at the same place, one app per category it once had."""
    apps = {category: make_app() for category in CATEGORIES}
    for category, app in apps.items():
        app.job(name="mail", category=category)(_fail)
        await work(app)
        for n in range(LETTERS[category]):
            handle = await app.dispatch("mail", PAYLOAD | {"idempotency_key": f"{category} {n}"})
            with pytest.raises(JobFailed, match="dead_letter"):
                await handle.result(20)
    return apps


@pytest.mark.parametrize("tenant", [{}, {"tenant_id": PAYLOAD["tenant_id"]}], ids=["any", "one"])
@pytest.mark.parametrize("category", ["ingestion", "sync"])
async def test_a_list_by_category_has_only_its_letters(
    apps: dict[str | None, Forge], category: str, tenant: dict[str, Any]
) -> None:
    dead_letters = apps[category].dead_letters

    page = await dead_letters.list(category=category, **tenant)

    assert [letter.category for letter in page.items] == [category] * LETTERS[category]
    assert page.total_count == LETTERS[category]


async def test_a_list_by_fingerprint_has_the_letters_of_its_group(
    apps: dict[str | None, Forge],
) -> None:
    dead_letters = apps[None].dead_letters

    groups = await dead_letters.groups()

    assert {group.category: group.letters for group in groups} == LETTERS
    for group in groups:
        found: list[DeadLetter] = (await dead_letters.list(fingerprint=group.fingerprint)).items
        assert [letter.category for letter in found] == [group.category] * group.letters


async def test_a_bulk_by_category_takes_only_its_letters(
    apps: dict[str | None, Forge], psql: Any
) -> None:
    request = await apps["sync"].dead_letters.reprocess_many(
        category="sync", rate=1000, canary=0, max_failures=100
    )

    report = await request.result(60)

    assert report["reprocessed"] == LETTERS["sync"]
    taken = await psql.fetch("select category from forge_dead_letters where status = 'reprocessed'")
    assert [row["category"] for row in taken] == ["sync"] * LETTERS["sync"]


async def test_letters_without_a_fingerprint_get_one_for_their_category(psql: Any) -> None:
    named = [
        await psql.fetchval(
            "insert into forge_dead_letters (job_id, job_type, category, queue, priority, payload, "
            "payload_version, attempt_count, original_created_at, original_scheduled_at) "
            "values (forge_uuidv7(), 'mail', $1, 'default', 50, '{}', '1.0', 1, now(), now()) "
            "returning fingerprint",
            category,
        )
        for category in CATEGORIES
    ]

    assert len(set(named)) == 3
