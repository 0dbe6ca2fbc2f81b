"""Workers that continue after they were declared dead: none of their writes is accepted."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import pytest

from forge import Forge
from tests.faults.apps.handlers import (
    beating,
    gated,
    gated_in_process,
    gated_in_thread,
    ignores_cancel,
    once_in_transaction,
    quick,
)
from tests.faults.kit.history import History, Kind
from tests.faults.kit.ledger import Gate, Ledger, events_of, until_started
from tests.faults.kit.process import until
from tests.faults.kit.proxy import Proxy
from tests.faults.kit.worker_processes import WorkerProcess, Workers
from tests.faults.scenarios import Scenario


async def test_a_completion_of_a_zombie_is_rejected(scenario: Scenario, gate: Gate) -> None:
    """Fault 3: the worker is stopped for longer than `dead_after`, then continued."""
    zombie, successor = await scenario.zombie(gate)

    assert zombie.reported("refused", job=scenario.job, lease=1, act="complete")
    row = await scenario.ledger.job(scenario.job)
    assert (row["status"], row["lease"], row["worker_id"]) == ("completed", 2, successor.id)
    await until(
        lambda: events_of(scenario.history, scenario.job, Kind.ACCEPTED),
        30,
        "the successor's ack is accepted",
    )
    (accepted,) = events_of(scenario.history, scenario.job, Kind.ACCEPTED)
    assert (accepted.lease, accepted.pid) == (2, successor.pid)
    verdict = await scenario.verdict()
    assert not verdict.faults, verdict


async def test_a_zombie_handler_that_sends_heartbeats_is_stopped(
    app: Forge, workers: Workers, history: History, ledger: Ledger, gate: Gate
) -> None:
    """Fault 3: StaleAttempt is raised in the handler, or the worker stops it first."""
    job = await app.dispatch(beating, gate.input)
    zombie = await workers.start()
    await until_started(history, job.id)
    zombie.sigstop()
    successor = await workers.start()
    await until_started(history, job.id, lease=2)

    zombie.sigcont()
    stale = await zombie.until_reported("stale")
    gate.open()

    assert stale["lease"] == 1
    row = await ledger.until_status(job.id, "completed")
    assert (row["lease"], row["worker_id"]) == (2, successor.id)
    zombie.sigterm()
    assert await zombie.ended() == 0


async def test_the_database_effect_of_a_zombie_is_rolled_back(
    app: Forge, workers: Workers, history: History, ledger: Ledger, gate: Gate
) -> None:
    """Fault 3 with `complete_in_transaction`: only the effect of the current attempt remains."""
    await ledger.connection.execute("create table effects (what text)")
    job = await app.dispatch(once_in_transaction, gate.input)
    zombie = await workers.start()
    await until_started(history, job.id)
    zombie.sigstop()
    await workers.start()
    await until_started(history, job.id, lease=2)

    gate.open(lease=1)
    zombie.sigcont()
    await until(lambda: events_of(history, job.id, Kind.FINISHED), 30, "the zombie has tried")
    gate.open()

    await ledger.until_status(job.id, "completed")
    effects = await ledger.connection.fetch("select what from effects")
    assert [row["what"] for row in effects] == ["lease 2"]


async def test_a_worker_restarted_with_the_same_id_rescues_its_jobs_immediately(
    app: Forge, workers: Workers, history: History, ledger: Ledger, gate: Gate
) -> None:
    """Fault 5: the jobs of the old process are rescued, and the old process is fenced."""
    name = uuid4()
    job = await app.dispatch(gated, gate.input)
    # Neither would be declared dead during this test.
    slow_settings = {"dead_after": "10m", "stale_threshold": "1h"}
    old = await workers.start(id=name, **slow_settings)
    await until_started(history, job.id)
    old.sigstop()

    new = await workers.start(id=name, **slow_settings)
    await until_started(history, job.id, lease=2)
    gate.open(lease=1)
    old.sigcont()

    assert await old.ended() == 0
    assert old.reported("notice", message="another worker has taken this one's id; it stops")
    assert (await ledger.job(job.id))["status"] == "running"
    gate.open()
    row = await ledger.until_status(job.id, "completed")
    assert (row["lease"], row["attempts"]) == (2, 1)
    assert new.reported("rescued", jobs=[str(job.id)])
    assert new.is_alive


async def test_a_replaced_worker_does_not_release_the_jobs_of_its_replacement(
    app: Forge, workers: Workers, history: History, ledger: Ledger, gate: Gate
) -> None:
    """Fault 5: the old process finds jobs under its id that it does not have, and leaves them.

    Its heartbeats are slow here, so it does not notice immediately that it was replaced.
    """
    name = uuid4()
    held = await app.dispatch(gated_in_process, gate.input)
    old = await workers.start(id=name, heartbeat_interval="5m", dead_after="10m")
    await until_started(history, held.id)
    looked = len(old.reported("reconciled"))
    await workers.start(id=name)
    await until_started(history, held.id, lease=2)

    # It compares three times: it finds the job taken, confirms that, and lets go.
    await until(lambda: len(old.reported("reconciled")) >= looked + 3, 30, "it looked for its jobs")

    row = await ledger.job(held.id)
    assert (row["status"], row["lease"]) == ("running", 2)


@pytest.mark.parametrize("handler", [gated, gated_in_thread, gated_in_process])
async def test_a_worker_stops_its_old_attempt_before_it_runs_the_job_again(
    handler: Any, app: Forge, workers: Workers, history: History, ledger: Ledger, gate: Gate
) -> None:
    """Fault 63: another worker rescues the job, and the stopped worker claims it again."""
    job = await app.dispatch(handler, gate.input)
    zombie = await _reclaiming(job.id, workers, history, ledger)

    await until(lambda: len(events_of(history, job.id, Kind.STARTED)) > 1, 60, "it runs again")
    gate.open()

    row = await ledger.until_status(job.id, "completed")
    assert row["worker_id"] == zombie.id
    after = await app.dispatch(quick)
    await ledger.until_status(after.id, "completed")
    zombie.sigterm()
    assert await zombie.ended() == 0
    if handler is not gated_in_process:  # a killed process records nothing
        assert _overlaps(history, job.id) == []


async def test_an_attempt_that_does_not_stop_delays_the_next_one_of_its_job(
    app: Forge, workers: Workers, history: History, ledger: Ledger, gate: Gate
) -> None:
    """Fault 63: at most one attempt of a job runs in a worker process."""
    job = await app.dispatch(ignores_cancel, gate.input)
    zombie = await _reclaiming(job.id, workers, history, ledger)
    await zombie.until_reported("ignored cancel", lease=1)
    meanwhile = await app.dispatch(quick)
    await ledger.until_status(meanwhile.id, "completed")

    gate.open()

    row = await ledger.until_status(job.id, "completed")
    assert (row["lease"] > 1, row["worker_id"]) == (True, zombie.id)
    assert _overlaps(history, job.id) == []


async def test_a_pause_of_the_whole_worker_is_not_blamed_on_a_handler(
    app: Forge, workers: Workers, history: History, ledger: Ledger, gate: Gate
) -> None:
    job = await app.dispatch(gated, gate.input)
    zombie = await _reclaiming(job.id, workers, history, ledger)

    def stood_still() -> list[str]:
        messages = [line["message"] for line in zombie.reported("notice")]
        return [message for message in messages if "stood still" in message]

    notices = await until(stood_still, 30, "it has noticed")
    gate.open()

    assert notices[0].startswith("the whole process stood still for ")


async def test_a_worker_that_shuts_down_releases_a_waiting_attempt(
    app: Forge, workers: Workers, history: History, ledger: Ledger, gate: Gate
) -> None:
    """Fault 63: drain and release include the waiting attempt."""
    job = await app.dispatch(ignores_cancel, gate.input)
    zombie = await _reclaiming(job.id, workers, history, ledger, shutdown_grace="200ms")
    await zombie.until_reported("ignored cancel", lease=1)

    zombie.sigterm()

    row = await ledger.until_status(job.id, "pending")
    assert row["attempts"] == 0
    gate.open()
    assert await zombie.ended() == 0
    assert [event.lease for event in events_of(history, job.id, Kind.STARTED)] == [1]


async def _reclaiming(
    job_id: UUID, workers: Workers, history: History, ledger: Ledger, **settings: Any
) -> WorkerProcess:
    """Have a stopped worker claim a job again that another worker rescued."""
    zombie = await workers.start(**settings)
    await until_started(history, job_id)
    zombie.sigstop()
    rescuer = await workers.start(jobs=["quick"])
    await ledger.until_status(job_id, "retry")
    rescuer.sigterm()
    assert await rescuer.ended() == 0
    zombie.sigcont()
    await ledger.until_status(job_id, "running")
    return zombie


def _overlaps(history: History, job_id: UUID) -> list[str]:
    """Attempts that started while another one of the same job had not finished."""
    alive: set[int] = set()
    found = []
    for event in history.events():
        if event.job == str(job_id) and event.kind is Kind.STARTED:
            found += [f"{event.lease} started beside {lease}" for lease in alive]
            alive.add(event.lease)
        elif event.job == str(job_id) and event.kind is Kind.FINISHED:
            alive.discard(event.lease)
    return found


async def test_a_zombie_claims_nothing_before_its_next_heartbeat(
    app: Forge, workers: Workers, history: History, ledger: Ledger, gate: Gate, proxy: Proxy
) -> None:
    """Fault 3: jobs that it claimed before its next heartbeat would be rescued from it."""
    before = await app.dispatch(gated, gate.input)
    zombie = await workers.start(url=proxy.url())
    await until_started(history, before.id)
    rescuer = await workers.start(jobs=["quick"])
    zombie.sigstop()
    await rescuer.until_reported("rescued", jobs=[str(before.id)])
    after = await app.dispatch(gated, gate.input)

    # The heartbeat must first detect that its connection is dead.
    assert proxy.silence(matching="insert into forge_workers") >= 1
    zombie.sigcont()
    await until_started(history, after.id)
    await ledger.until_beating(zombie.id, 10)
    gate.open()

    row = await ledger.until_status(after.id, "completed")
    assert (row["lease"], row["crashes"]) == (1, 0)
    assert not rescuer.reported("rescued", jobs=[str(after.id)])
