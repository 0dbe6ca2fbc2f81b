"""Runs without a known owner become claimable again after the default timeout."""

from datetime import timedelta
from typing import Any
from uuid import uuid4

import asyncpg

from forge import Config
from tests.apps import MakeApp, Work
from tests.schedules.conftest import Until
from tests.schedules.handlers import in_child

LOSE = """
    update forge_schedules
    set running_since = now() - make_interval(secs => $2), worker_id = $3, lease = 1
    where key = $1
"""


async def test_a_run_whose_owner_is_unknown_comes_back_after_five_minutes(
    make_app: MakeApp, work: Work, becomes: Until, psql: "asyncpg.Connection[Any]"
) -> None:
    app = make_app(heartbeat_interval="100ms", dead_after="500ms")
    stale = app.config.worker.stale_threshold

    app.register(in_child)
    for key in ("old", "unowned", "young"):
        await app.schedules.ensure(in_child, key)
    await psql.execute(LOSE, "old", 301, uuid4())
    await psql.execute(LOSE, "unowned", 301, None)
    await psql.execute(LOSE, "young", 240, uuid4())
    await work(app)

    for key in ("old", "unowned"):
        row = await becomes("in_child", lambda row: row.last_run_at, key)
        assert [run["outcome"] for run in row.recent_runs] == ["completed", "lost"]
        assert row.lease == 2
    young = await app.schedules.get("in_child", "young")
    assert (young.lease, young.running_since is not None) == (1, True)
    assert stale == Config().worker.stale_threshold == timedelta(minutes=5)
