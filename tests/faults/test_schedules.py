"""Schedules under faults: one run per tick, whichever worker or server dies."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest

from forge import Config, Forge
from forge.store.embedded import Cluster
from tests.faults.apps.recurring import tick_name, ticking
from tests.faults.kit.checker import Row, check
from tests.faults.kit.history import Event, History, Kind
from tests.faults.kit.ledger import Gate, Ledger, until_started
from tests.faults.kit.process import until
from tests.faults.kit.worker_processes import Workers
from tests.faults.test_database_restarts import durable, durable_workers

__all__ = ["durable", "durable_workers"]

START = datetime(2026, 1, 1, tzinfo=UTC)
EVERY = timedelta(seconds=1)
# Long enough that a worker on a busy machine is not declared dead.
PACE: dict[str, Any] = {"heartbeat_interval": "500ms", "dead_after": "3s", "stale_threshold": "6s"}
# The database's own record of each accepted run: a worker may be killed before it can record it.
RECORD = """
    create table accepted (schedule uuid, tick timestamptz, lease bigint, outcome text);
    create function record() returns trigger language plpgsql as $$
    begin
        insert into accepted values
            (old.id, old.next_run_at, old.lease, new.recent_runs -> 0 ->> 'outcome');
        return null;
    end $$;
    create trigger record after update on forge_schedules
        for each row when (old.running_since is not null and new.running_since is null
                           and new.last_run_at is distinct from old.last_run_at)
        execute function record();
"""


@pytest.mark.parametrize(
    ("schedules", "ticks", "kills"),
    [(20, 20, 5), pytest.param(50, 200, 40, marks=[pytest.mark.slow, pytest.mark.timeout(1800)])],
    ids=["400 ticks", "10000 ticks"],
)
async def test_every_tick_runs_once_while_workers_are_killed_at_random(
    app: Forge,
    workers: Workers,
    history: History,
    ledger: Ledger,
    schedules: int,
    ticks: int,
    kills: int,
) -> None:
    await ledger.connection.execute(RECORD)
    chance = random.Random(f"{schedules} {ticks}")
    expected = await _create_backlog(app, history, schedules, ticks)
    for _ in range(4):
        await workers.start(jobs=["ticking"], max_concurrent=5, **PACE)

    for _ in range(kills):
        done = await _done(ledger)
        share = chance.randrange(1, 2 * len(expected) // kills)
        await until(lambda goal=done + share: _is_done(ledger, goal, expected), 300, "ticks pass")
        alive = [worker for worker in workers.processes if worker.is_alive]
        chance.choice(alive).sigkill()
        await workers.start(jobs=["ticking"], max_concurrent=5, **PACE)
    await until(lambda: _is_done(ledger, len(expected), expected), 900, "every tick has been run")

    accepted = await ledger.connection.fetch("select * from accepted")
    runs = [row for row in accepted if row["outcome"] == "completed"]
    counted = Counter(tick_name(row["schedule"], row["tick"]) for row in runs)
    assert counted.keys() == set(expected)
    assert set(counted.values()) == {1}
    verdict = check(_with_answers(history, runs), _as_rows(runs), workers.halts)
    assert not verdict.faults, verdict
    assert await ledger.connection.fetchval("select count(*) from forge_schedules") == schedules


async def test_every_tick_runs_once_while_the_database_restarts(
    durable: Cluster, durable_workers: Workers, history: History
) -> None:
    connection = await asyncpg.connect(durable.url())
    await connection.execute(RECORD)
    await connection.close()
    async with Forge(Config(), database_url=durable.url()) as app:
        expected = await _create_backlog(app, history, 10, 40)
        workers = [await durable_workers.start(jobs=["ticking"], **PACE) for _ in range(2)]
        for share in (0.3, 0.6):
            await _until_done(durable, int(len(expected) * share))
            await asyncio.to_thread(durable.stop, "immediate")
            await asyncio.to_thread(durable.start)
        await _until_done(durable, len(expected))

    connection = await asyncpg.connect(durable.url())
    accepted = await connection.fetch("select * from accepted")
    await connection.close()
    counted = Counter(tick_name(row["schedule"], row["tick"]) for row in accepted)
    assert counted == dict.fromkeys(expected, 1)
    assert all(worker.is_alive for worker in workers)
    assert not any(worker.reported("rescued") for worker in workers)


async def test_the_schedule_of_a_killed_worker_runs_again_elsewhere(
    app: Forge, workers: Workers, history: History, ledger: Ledger, gate: Gate
) -> None:
    made = await app.schedules.ensure("gated_run", "", gate.input)
    name = tick_name(made.id, made.next_run_at)
    first = await workers.start(jobs=["gated_run"])
    await until_started(history, name)  # type: ignore[arg-type]
    second = await workers.start(jobs=["gated_run"])

    first.sigkill()
    await until_started(history, name, lease=2)  # type: ignore[arg-type]
    gate.open()

    row = await _until_run(app)
    assert (row.lease, row.worker_id, row.crashes) == (2, second.id, 0)
    assert [run["outcome"] for run in row.recent_runs] == ["completed", "lost"]
    assert second.reported("rescued", jobs=[str(made.id)])


async def test_a_worker_paused_past_its_lease_cannot_end_the_run(
    app: Forge, workers: Workers, history: History, gate: Gate
) -> None:
    made = await app.schedules.ensure("gated_run", "", gate.input)
    name = tick_name(made.id, made.next_run_at)
    zombie = await workers.start(jobs=["gated_run"])
    await until_started(history, name)  # type: ignore[arg-type]
    zombie.sigstop()
    successor = await workers.start(jobs=["gated_run"])
    await until_started(history, name, lease=2)  # type: ignore[arg-type]

    gate.open(lease=1)
    zombie.sigcont()
    await zombie.until_reported("refused", job=made.id, lease=1, act="conclude")
    assert (await app.schedules.get("gated_run")).running_since is not None
    gate.open()

    row = await _until_run(app)
    assert (row.lease, row.worker_id) == (2, successor.id)


async def test_a_drained_worker_releases_runs_that_exceed_the_grace_period(
    app: Forge, workers: Workers, history: History, gate: Gate
) -> None:
    made = await app.schedules.ensure("gated_run", "", gate.input)
    worker = await workers.start(jobs=["gated_run"], shutdown_grace="300ms")
    await until_started(history, tick_name(made.id, made.next_run_at))  # type: ignore[arg-type]

    worker.sigterm()

    assert await worker.ended() == 0
    row = await app.schedules.get("gated_run")
    assert (row.running_since, row.next_run_at) == (None, made.next_run_at)
    assert [run["outcome"] for run in row.recent_runs] == ["released"]
    assert (row.crashes, row.suspect, row.consecutive_failures) == (1, False, 0)


async def _create_backlog(app: Forge, history: History, schedules: int, ticks: int) -> list[str]:
    """Create schedules with a backlog of ticks, and return the names of the ticks."""
    app.register(ticking)
    last = START + (ticks - 1) * EVERY
    expected = []
    for n in range(schedules):
        made = await app.schedules.ensure(
            ticking,
            str(n),
            {"last": last.isoformat()},
            next_run_at=START,
            every=EVERY,
            missed="all",
        )
        expected += [tick_name(made.id, START + tick * EVERY) for tick in range(ticks)]
    for name in expected:
        history.dispatched(name)
    return expected


async def _until_done(durable: Cluster, goal: int) -> None:
    connection = await asyncpg.connect(durable.url())
    counting = "select count(*) from accepted where outcome = 'completed'"

    async def is_done() -> bool:
        return bool(await connection.fetchval(counting) >= goal)

    await until(is_done, 120, f"{goal} ticks have been run")
    await connection.close()


async def _done(ledger: Ledger) -> int:
    counting = "select count(*) from accepted where outcome = 'completed'"
    return int(await ledger.connection.fetchval(counting))


async def _is_done(ledger: Ledger, goal: int, expected: list[str]) -> bool:
    return await _done(ledger) >= min(goal, len(expected))


def _with_answers(history: History, runs: list[Any]) -> list[Event]:
    events = history.events()
    ends = {(event.job, event.lease): event for event in events if event.kind is Kind.FINISHED}
    for row in runs:
        name = tick_name(row["schedule"], row["tick"])
        end = ends[name, row["lease"]]
        events.append(
            Event(
                Kind.ACCEPTED, name, row["lease"], end.worker, "completed", end.pid, end.monotonic
            )
        )
    return events


def _as_rows(runs: list[Any]) -> list[Row]:
    return [Row(tick_name(row["schedule"], row["tick"]), "completed", row["lease"]) for row in runs]


async def _until_run(app: Forge) -> Any:
    async def look() -> Any:
        row = await app.schedules.get("gated_run")
        return row if row.last_run_at and row.running_since is None else None

    return await until(look, 30, "the schedule has run")
