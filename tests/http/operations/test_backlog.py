"""What waits and runs now, over HTTP."""

from typing import Any

import httpx

from forge import Forge
from forge.core.lifecycle import Status
from forge.store.connection.database import Database
from tests.http.conftest import MakeToken
from tests.http.job_client import code
from tests.store.placing import Psql, insert, placed, registered

ROOT = {"job_type": "work", "queue": "default", "worker_capability": None}


async def test_backlog_adds_up_priorities_and_what_runs(
    app: Forge,
    http: httpx.AsyncClient,
    token: MakeToken,
    database: Database,
    psql: "Psql[Any]",
) -> None:
    worker = await registered(database)
    await placed(psql, Status.RUNNING, worker=worker.id)
    for priority in (50, 75):
        await insert(psql, priority=priority)
    await insert(psql, queue="files", worker_capability="gpu", tenant_id=7)
    await psql.execute(
        "update forge_jobs set scheduled_at = now() + interval '1 hour' where queue = 'files'"
    )
    await insert(psql, queue="files", worker_capability="gpu", tenant_id=7)

    answer = await http.get("/_api/backlog", headers=token("staff"))

    default, files = answer.json()["items"]
    assert 0 <= default.pop("oldest_seconds") < 600
    assert default == ROOT | {"ready": {"count": 2, "precision": "exact"}, "running": 1}
    assert (files["queue"], files["worker_capability"]) == ("files", "gpu")
    assert (files["ready"]["count"], files["running"]) == (1, 0)


async def test_backlog_stops_counting_at_a_thousand_jobs_of_a_priority(
    http: httpx.AsyncClient, token: MakeToken, psql: "Psql[Any]"
) -> None:
    await psql.execute(
        "insert into forge_jobs (job_type) select 'work' from generate_series(1, 1200)"
    )

    (item,) = (await http.get("/_api/backlog", headers=token("staff"))).json()["items"]

    assert item["ready"] == {"count": 1000, "precision": "at_least"}


async def test_backlog_is_for_operators(http: httpx.AsyncClient, token: MakeToken) -> None:
    answer = await http.get("/_api/backlog", headers=token("staff", tenant=7))

    assert code(answer) == (403, "forbidden")
