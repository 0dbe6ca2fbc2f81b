"""Counts of jobs: exact for few, with their precision for many."""

from typing import Any
from uuid import uuid4

import httpx
import pytest

from forge import Status
from forge.jobs import counts as counting
from tests.http.conftest import MakeToken
from tests.store.placing import Psql, placed

Counts = dict[str, Any]


async def counted(http: httpx.AsyncClient, headers: dict[str, str]) -> Counts:
    answer = await http.get("/_api/jobs/counts", headers=headers)
    assert answer.status_code == 200, answer.text
    counts: Counts = answer.json()
    return counts


def by_status(counts: Counts, *statuses: str) -> list[tuple[int, str]]:
    found = [counts["by_status"][status] for status in statuses]
    return [(each["count"], each["precision"]) for each in found]


async def crowd(psql: "Psql[Any]") -> None:
    """Place jobs of two types in several statuses, with and without a tenant."""
    for status, count in {"pending": 4, "running": 2, "failed": 3, "completed": 5}.items():
        for n in range(count):
            await placed(
                psql,
                Status(status),
                worker=uuid4(),
                job_type="mail" if n else "export",
                tenant_id=7 if n % 2 else None,
            )


async def test_few_jobs_are_counted_exactly(
    http: httpx.AsyncClient, token: MakeToken, psql: "Psql[Any]"
) -> None:
    await crowd(psql)

    counts = await counted(http, token("user"))

    assert set(counts["by_status"]) == set(Status)
    assert by_status(counts, "pending", "running", "failed", "completed", "cancelled") == [
        (4, "exact"),
        (2, "exact"),
        (3, "exact"),
        (5, "exact"),
        (0, "exact"),
    ]
    assert counts["by_type"] == {
        "export": {
            "live": {"count": 2, "precision": "exact"},
            "all": {"count": 4, "precision": "exact"},
        },
        "mail": {
            "live": {"count": 4, "precision": "exact"},
            "all": {"count": 10, "precision": "exact"},
        },
    }


async def test_counts_are_per_tenant(
    http: httpx.AsyncClient, token: MakeToken, psql: "Psql[Any]"
) -> None:
    await crowd(psql)

    counts = await counted(http, token("user", tenant=7))

    assert by_status(counts, "pending", "completed") == [(2, "exact"), (2, "exact")]
    assert set(counts["by_type"]) == {"mail"}
    assert (await counted(http, token("user", tenant=8)))["by_type"] == {}


async def test_live_counts_stay_exact_with_many_final_jobs(
    http: httpx.AsyncClient,
    token: MakeToken,
    psql: "Psql[Any]",
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await crowd(psql)
    monkeypatch.setattr(counting, "EXACT_LIMIT", 4)

    counts = await counted(http, token("user"))

    # The sample is as large as this whole table, so that its estimates are true.
    assert by_status(counts, "pending", "running", "failed", "completed") == [
        (4, "exact"),
        (2, "exact"),
        (3, "exact"),
        (5, "estimate"),
    ]
    assert counts["by_type"]["mail"] == {
        "live": {"count": 4, "precision": "exact"},
        "all": {"count": 10, "precision": "estimate"},
    }


async def test_counts_above_the_limit_are_at_least(
    http: httpx.AsyncClient,
    token: MakeToken,
    psql: "Psql[Any]",
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await crowd(psql)
    monkeypatch.setattr(counting, "EXACT_LIMIT", 2)

    counts = await counted(http, token("user"))
    own = await counted(http, token("user", tenant=7))

    assert by_status(counts, "pending", "running", "failed") == [
        (3, "at_least"),
        (2, "exact"),
        (3, "estimate"),
    ]
    assert {each["precision"] for each in own["by_status"].values()} == {"at_least"}
    assert sum(each["count"] for each in own["by_status"].values()) == 3
