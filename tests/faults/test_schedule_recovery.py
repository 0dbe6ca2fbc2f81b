"""With the default settings, schedules of a killed worker run again within ten seconds."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from forge import Config, Forge
from forge.core.duration import format_duration
from tests.faults.apps.recurring import tick_name
from tests.faults.kit.history import History
from tests.faults.kit.ledger import Gate, Ledger, until_started
from tests.faults.kit.worker_processes import Workers

SETTINGS = (
    "heartbeat_interval",
    "dead_after",
    "stale_threshold",
    "poll_interval",
    "idle_poll_interval",
)
PACE: dict[str, Any] = {name: format_duration(getattr(Config().worker, name)) for name in SETTINGS}
PROMISED = timedelta(seconds=10)


async def test_the_schedule_of_a_killed_worker_is_claimed_again_within_ten_seconds(
    app: Forge, workers: Workers, history: History, ledger: Ledger, gate: Gate
) -> None:
    made = await app.schedules.ensure("gated_run", "", gate.input)
    name = tick_name(made.id, made.next_run_at)
    first = await workers.start(jobs=["gated_run"], **PACE)
    await until_started(history, name)  # type: ignore[arg-type]
    second = await workers.start(jobs=["gated_run"], **PACE)
    # Long enough for its first search to end, which covers more than newly dead workers.
    await ledger.until_beating(second.id, beats=5)

    first.sigkill()
    killed_at = await ledger.connection.fetchval("select now()")
    await until_started(history, name, lease=2)  # type: ignore[arg-type]

    row = await app.schedules.get("gated_run")
    assert row.worker_id == second.id
    assert row.running_since - killed_at <= PROMISED
    gate.open()
