"""Lists, groups and counts of dead letters over HTTP, per tenant."""

from typing import Any

import httpx
import pytest

from tests.dead_letters.letters import fill
from tests.http.admins import DLQ, MANAGER, Admin, events
from tests.http.conftest import MakeToken
from tests.http.job_client import code, paths


async def test_dead_letters_of_other_tenants_are_not_found(
    psql: Any, admin: Admin, operator: Admin
) -> None:
    (theirs,) = await fill(psql, 1, tenant_id=8)
    (nobodys,) = await fill(psql, 1)

    for dlq_id in (theirs, nobodys, 10**15):
        assert code(await admin.get(f"{dlq_id}/")) == (404, "not_found")
        asked = await admin.post(f"{dlq_id}/reprocess/", {"notes": "x"})
        assert code(asked) == (404, "not_found")
        asked = await admin.post(f"{dlq_id}/discard/", {"notes": "x"})
        assert code(asked) == (404, "not_found")
    assert (await admin.get()).json() == {"dlq_items": [], "total_count": 0, "next_cursor": None}
    assert (await admin.get("statistics/")).json()["total_count"] == 0
    assert (await admin.get("groups/")).json() == {"groups": [], "recent_steps": None}
    assert code(await admin.get(tenant_id=8)) == (403, "forbidden")
    assert await events(psql) == []
    assert (await operator.get()).json()["total_count"] == 2
    assert (await operator.get(tenant_id=8)).json()["total_count"] == 1


@pytest.mark.parametrize("dlq_id", ["x", "0", "-1", str(2**63), "1.5"])
async def test_invalid_dlq_id_is_refused(operator: Admin, dlq_id: str) -> None:
    assert paths(await operator.get(f"{dlq_id}/")) == ["path.dlq_id"]


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({}, 9),
        ({"job_type": "flaky"}, 7),
        ({"category": "sync"}, 2),
        ({"error_class": "transient"}, 3),
        ({"job_type": "flaky", "error_class": "transient"}, 3),
        ({"status": "discarded"}, 1),
        ({"status": "pending_review", "job_type": "flaky"}, 6),
    ],
    ids=str,
)
async def test_filters_narrow_both_the_list_and_the_count(
    psql: Any, operator: Admin, asked: Any, found: int
) -> None:
    (first, *_) = await fill(psql, 4, "flaky")
    await fill(psql, 3, "flaky", error_class="transient")
    await fill(psql, 2, "pull", category="sync")
    await operator.post(f"{first}/discard/", {"notes": "x"})

    page = (await operator.get(**asked)).json()

    assert (len(page["dlq_items"]), page["total_count"]) == (found, found)


async def test_list_is_paged(psql: Any, operator: Admin) -> None:
    made = await fill(psql, 7)

    seen, cursor = [], None
    while cursor or not seen:
        asked = {"limit": 3} | ({"cursor": cursor} if cursor else {})
        page = (await operator.get(**asked)).json()
        seen += [item["dlq_id"] for item in page["dlq_items"]]
        cursor = page["next_cursor"]
        assert page["total_count"] == 7

    assert seen == made[::-1]


async def test_statistics_count_by_status_category_type_and_error_class(
    psql: Any, operator: Admin, admin: Admin
) -> None:
    await fill(psql, 4, "flaky", tenant_id=123)
    (one, _) = await fill(psql, 2, "pull", category="sync", error_class="transient")
    await operator.post(f"{one}/discard/", {"notes": "x"})

    assert (await operator.get("statistics/")).json() == {
        "total_count": 6,
        "by_status": {"discarded": 1, "pending_review": 5},
        "by_category": {"none": 4, "sync": 2},
        "by_type": {"flaky": 4, "pull": 2},
        "by_error_class": {"none": 4, "transient": 2},
    }
    assert (await admin.get("statistics/")).json()["by_type"] == {"flaky": 4}


async def test_groups_are_most_frequent_first(psql: Any, operator: Admin) -> None:
    await fill(psql, 2, place="jobs:other")
    ids = await fill(psql, 5)

    groups = (await operator.get("groups/")).json()["groups"]
    few = (await operator.get("groups/", limit=1)).json()["groups"]

    assert [(group["letters"], group["place"]) for group in groups] == [
        (5, "jobs:run"),
        (2, "jobs:other"),
    ]
    assert (groups[0]["sample"], groups[0]["error_message"]) == (ids[-1], "no luck with 5")
    assert few == groups[:1]
    found = (await operator.get(fingerprint=groups[1]["fingerprint"])).json()
    assert found["total_count"] == 2


@pytest.mark.parametrize("path", ["", "statistics/", "groups/"])
async def test_trailing_slash_is_optional(
    http: httpx.AsyncClient, token: MakeToken, path: str
) -> None:
    with_it = await http.get(f"{DLQ}{path}", headers=token(*MANAGER))
    without = await http.get(f"{DLQ}{path}"[:-1], headers=token(*MANAGER))

    assert with_it.status_code == 200
    assert with_it.json() == without.json()


async def test_post_without_a_trailing_slash_works(psql: Any, operator: Admin) -> None:
    (dlq_id,) = await fill(psql, 1)

    answer = await operator.post(f"{dlq_id}/discard", {"notes": "x"})

    assert answer.status_code == 200


async def test_groups_count_their_letters_per_step(psql: Any, operator: Admin) -> None:
    await fill(psql, 3)
    await fill(psql, 2, place="jobs:other")

    first = (await operator.get("groups/", step="1h", steps=3)).json()
    cause = first["groups"][1]["fingerprint"]
    one = (await operator.get("groups/", step="1d", steps=1, fingerprint=cause)).json()
    plain = (await operator.get("groups/")).json()
    wrong = await operator.get("groups/", step="1s")

    assert [sum(group["recent"]) for group in first["groups"]] == [3, 2]
    assert (first["recent_steps"]["step"], first["recent_steps"]["highest"]) == ("1h", 500)
    assert [group["recent"] for group in one["groups"]] == [[2]]
    assert (plain["groups"][0]["recent"], plain["recent_steps"]) == (None, None)
    assert wrong.status_code == 422
