"""Lost answers to a schedule's statements: one run, and no forgotten claim."""

from __future__ import annotations

from typing import Any

from forge import Forge
from tests.faults.apps.recurring import tick_name
from tests.faults.kit.history import History, Kind
from tests.faults.kit.ledger import Gate, events_of, until_started
from tests.faults.kit.process import until
from tests.faults.kit.proxy import Proxy
from tests.faults.kit.worker_processes import Workers


async def test_an_outcome_with_a_lost_answer_is_not_stale(
    app: Forge, workers: Workers, proxy: Proxy, history: History, gate: Gate
) -> None:
    """Fault 21: the worker checks the row and finds its own outcome."""
    made = await app.schedules.ensure("gated_run", "", gate.input)
    name: Any = tick_name(made.id, made.next_run_at)
    worker = await workers.start(url=proxy.url(), jobs=["gated_run"])
    await until_started(history, name)
    cut = proxy.cut_after_commit(matching="ack.outcome in ('failed', 'crashed')")

    gate.open()
    await until(lambda: cut.happened, 30, "the answer was lost")
    worker.sigterm()
    assert await worker.ended() == 0

    row = await app.schedules.get("gated_run")
    assert (row.lease, row.running_since, row.consecutive_failures) == (1, None, 0)
    assert [run["outcome"] for run in row.recent_runs] == ["completed"]
    assert worker.reported("notice", message="acks wait for the database")
    assert not worker.reported("refused")
    assert len(events_of(history, name, Kind.STARTED)) == 1


async def test_a_claim_with_a_lost_answer_is_released(
    app: Forge, workers: Workers, proxy: Proxy, history: History, gate: Gate
) -> None:
    """Fault 21: the worker finds a run under its id that it does not have."""
    gate.open()
    worker = await workers.start(url=proxy.url(), jobs=["gated_run"])
    cut = proxy.cut_after_commit(matching="set running_since = now(), worker_id = $5")
    made = await app.schedules.ensure("gated_run", "", gate.input)

    async def has_run() -> Any:
        row = await app.schedules.get("gated_run")
        return row if row.last_run_at else None

    row = await until(has_run, 30, "the schedule has run")
    assert cut.happened == 1
    assert (row.lease, row.crashes) == (2, 0)
    assert [run["outcome"] for run in row.recent_runs] == ["completed"]
    name: Any = tick_name(made.id, made.next_run_at)
    assert [event.lease for event in events_of(history, name, Kind.STARTED)] == [2]
    assert worker.reported("notice", message="claims wait for the database")
