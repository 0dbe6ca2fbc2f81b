"""Plans of reviews: statements on dead letters cost the same however many there are."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from forge.core.dead_letter import LetterFilter
from forge.store import dead_letters
from forge.store.connection.database import Database
from forge.store.statement import Statement
from tests.dead_letters.letters import fill
from tests.store.plans.crowd import EMPTY, assert_flat, cost_of, costs_of, planned, plans_of
from tests.store.plans.crowd import fill as fill_jobs

HOUR = timedelta(hours=1)
UNDER_REVIEW = LetterFilter(status="pending_review")
STATEMENTS: dict[str, Callable[[list[int]], Statement[Any]]] = {
    "list": lambda ids: dead_letters.listed(UNDER_REVIEW, None, 10),
    "list any": lambda ids: dead_letters.listed(LetterFilter(), ids[-1], 10),
    "list without a match": lambda ids: dead_letters.listed(
        LetterFilter(status="reprocessed"), None, 10
    ),
    "list of a tenant": lambda ids: dead_letters.listed(LetterFilter(tenant_id=7), None, 10),
    "list of a type": lambda ids: dead_letters.listed(LetterFilter(job_type="rare"), None, 10),
    "list of a tenant and a type": lambda ids: dead_letters.listed(
        LetterFilter(tenant_id=7, job_type="rare"), None, 10
    ),
    "choose": lambda ids: _next(),
    "choose of a tenant": lambda ids: _next(tenant_id=7),
    "choose of a type": lambda ids: _next(job_type="rare"),
    "choose of a tenant and a type": lambda ids: _next(tenant_id=7, job_type="many"),
    "get": lambda ids: dead_letters.get(ids[0], None),
    "reprocess": lambda ids: dead_letters.reprocess(ids, None, "ann", None),
    "discard": lambda ids: dead_letters.discard(ids, None, "ann", "no"),
    "activity": lambda ids: dead_letters.activity(["none"], None, None, HOUR, 24),
    "activity of a tenant": lambda ids: dead_letters.activity(["none"], None, 7, HOUR, 24),
    "audit": lambda ids: dead_letters.audit("requested", ids, "ann", None),
    "outcomes": lambda ids: dead_letters.outcomes(ids),
}


def _next(**causes: Any) -> Statement[Any]:
    wanted = LetterFilter(status="pending_review", **causes)
    return dead_letters.choose(wanted, after=0, until=2**53, limit=10)


@pytest.mark.parametrize("analyzed", [False, True])
async def test_a_review_costs_the_same_among_many_as_among_few(
    psql: Any, explain: Any, analyzed: bool
) -> None:
    ids = await fill(psql, 5, "rare", tenant_id=7)
    await fill(psql, 5, "many", tenant_id=7)  # among many of the same cause
    statements = {name: make(ids) for name, make in STATEMENTS.items()}
    cost = []
    for count in (500, 9500):
        await fill(psql, count, "many", tenant_id=1)
        if analyzed:
            await psql.execute("vacuum analyze")
        cost.append(await costs_of(explain, statements))

    assert_flat(*cost)


@pytest.mark.parametrize("empty", EMPTY)
async def test_a_review_planned_when_there_were_no_letters_stays_cheap_among_many(
    psql: Any, explain: Any, empty: str
) -> None:
    if empty == "tidied":
        await psql.execute("vacuum analyze")
    await plans_of(explain, {name: make([1]) for name, make in STATEMENTS.items()})
    cost = []
    for count in (500, 9500):
        await fill(psql, count, "many", tenant_id=1)
        ids = await fill(psql, 10, "rare", tenant_id=7)  # a page of them
        await fill(psql, 10, "many", tenant_id=7)
        statements = {name: make(ids) for name, make in STATEMENTS.items()}
        cost.append(await costs_of(explain, statements))

    assert_flat(*cost)


async def test_what_became_of_letters_costs_the_same_when_the_jobs_have_grown_since_it_was_planned(
    psql: Any, database: Database, explain: Any
) -> None:
    ids = await fill(psql, 1000)
    await psql.execute("analyze forge_dead_letters")
    await planned(explain, dead_letters.outcomes(ids))  # while there was no job
    cost = []
    for count, some in ((50, ids[:50]), (9950, ids[50:100])):
        await fill_jobs(psql, "many", count)
        await database.run(dead_letters.reprocess(some, None, "ann", None))
        cost.append(await cost_of(explain, dead_letters.outcomes(some)))

    few, many = cost
    assert 0 < many <= few * 2  # an index may be a level higher
