"""Ends of runs that the database refuses: what a run came to is kept until it can be written."""

from typing import Any

import pytest

from forge import Forge, ScheduleContext
from forge.core.events import Event, WorkerNotice
from forge.worker import batch_acker
from tests.apps import working
from tests.faults.kit.process import until
from tests.schedules.conftest import Until

REFUSE = """
    create function refuse() returns trigger language plpgsql
    as $$ begin raise exception 'broken' using errcode = '23514'; end $$;
    create trigger refuse before update on forge_schedules for each row
    when (new.running_since is null) execute function refuse()
"""


async def test_a_run_whose_end_is_refused_does_not_run_again(
    app: Forge, becomes: Until, psql: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_acker, "REFUSAL_PAUSE", 0.1)
    refusals: list[Event] = []
    app.events.listeners.append(
        lambda event: refusals.append(event) if _is_refusal(event) else None
    )
    ran = []

    @app.schedule("fetch_feed", every="1h")
    async def fetch_feed(ctx: ScheduleContext) -> None:
        ran.append(ctx.lease)

    await app.schedules.ensure("fetch_feed")
    await psql.execute(REFUSE)
    async with working(app):
        await until(lambda: len(refusals) > 3, 20, "its end was refused, and sent again")
        await psql.execute("drop trigger refuse on forge_schedules")
        row = await becomes("fetch_feed", lambda row: row.running_since is None)

    assert ran == [1]
    assert [run["outcome"] for run in row.recent_runs] == ["completed"]


def _is_refusal(event: Event) -> bool:
    return isinstance(event, WorkerNotice) and event.message.endswith("was refused")
