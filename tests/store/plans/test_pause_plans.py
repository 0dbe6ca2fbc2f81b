"""Claims beside paused jobs: they cost as much as if those jobs did not exist."""

from typing import Any

import pytest

from forge import Forge
from forge.core.workers.lanes import BEGINNING
from forge.store import jobs
from forge.store.connection.database import Database
from forge.store.jobs import LaneCursor
from forge.store.statement import Statement
from forge.store.workers import Registration
from tests.store.placing import Psql, registered
from tests.store.plans.crowd import cost_of, fill

PAUSED = 20_000
FREE = 1_000
# How much more a claim may cost beside paused jobs.
GROWTH = 1.1


@pytest.mark.parametrize("free", [["mail"], ["mail", "report"]])
async def test_a_claim_beside_paused_jobs_costs_as_much_as_without_them(
    psql: "Psql[Any]", database: Database, explain: Any, app: Forge, free: list[str]
) -> None:
    worker = await registered(database)
    for name in free:
        await fill(psql, name, FREE)
    await psql.execute("vacuum analyze forge_jobs")
    without = await cost_of(explain, await _claim(database, worker, free))

    await fill(psql, "export", PAUSED)
    await app.pause("export", reason="broken")
    await psql.execute("vacuum analyze forge_jobs")
    beside = await cost_of(explain, await _claim(database, worker, free))

    assert 0 < beside <= without * GROWTH


async def test_a_claim_of_a_paused_lane_reads_none_of_its_jobs(
    psql: "Psql[Any]", database: Database, explain: Any, app: Forge
) -> None:
    worker = await registered(database)
    await fill(psql, "export", FREE)
    await fill(psql, "mail", FREE)
    alone = await _claim(database, worker, ["export"])
    across = await _claim(database, worker, ["export", "mail"])
    await app.pause("export", reason="broken")
    await app.pause("mail", reason="broken")

    costs = [await cost_of(explain, statement) for statement in (alone, across)]

    # The worker's own row and the pauses.
    assert max(costs) <= 5


async def _claim(database: Database, worker: Registration, types: list[str]) -> Statement[Any]:
    """Return the claim from the lanes of these types, as a worker sends it."""
    lanes = [lane for lane in await database.run(jobs.survey()) if lane.job_type in types]
    assert len(lanes) == len(types)
    places = [LaneCursor(lane.lane, *BEGINNING) for lane in lanes]
    return jobs.claim(
        places,
        10,
        start=True,
        worker=worker.id,
        incarnation=worker.incarnation,
        lanes=lanes,
    )
