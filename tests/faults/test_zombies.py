"""Workers that come back from the dead: nothing they write counts."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import pytest

from forge import Forge
from tests.faults.apps.handlers import (
    beating,
    deaf_to_cancel,
    gated,
    gated_in_process,
    gated_in_thread,
    once_in_transaction,
    quick,
)
from tests.faults.kit.crew import Crew, WorkerProcess
from tests.faults.kit.history import History, Kind
from tests.faults.kit.ledger import Gate, Ledger, told, until_started
from tests.faults.kit.process import until
from tests.faults.kit.proxy import Proxy
from tests.faults.scenes import Scene


async def test_a_zombie_finishes_in_vain(scene: Scene, gate: Gate) -> None:
    """Fault 3: stopped for longer than the dead are waited for, then continued."""
    zombie, heir = await scene.zombie(gate)

    assert zombie.said("refused", job=scene.job, lease=1, act="complete")
    row = await scene.ledger.job(scene.job)
    assert (row["status"], row["lease"], row["worker_id"]) == ("completed", 2, heir.id)
    await until(lambda: told(scene.history, scene.job, Kind.ACCEPTED), 30, "the heir's ack counts")
    (accepted,) = told(scene.history, scene.job, Kind.ACCEPTED)
    assert (accepted.lease, accepted.pid) == (2, heir.pid)
    verdict = await scene.verdict()
    assert not verdict.faults, verdict


async def test_a_zombie_that_sends_heartbeats_learns_that_it_is_dead(
    app: Forge, crew: Crew, history: History, ledger: Ledger, gate: Gate
) -> None:
    """Fault 3: StaleAttempt is raised in the handler, or its worker stops it before."""
    job = await app.dispatch(beating, gate.input)
    zombie = await crew.start()
    await until_started(history, job.id)
    zombie.sigstop()
    heir = await crew.start()
    await until_started(history, job.id, lease=2)

    zombie.sigcont()
    stale = await zombie.until_said("stale")
    gate.open()

    assert stale["lease"] == 1
    row = await ledger.until_status(job.id, "completed")
    assert (row["lease"], row["worker_id"]) == (2, heir.id)
    zombie.sigterm()
    assert await zombie.ended() == 0


async def test_the_effect_of_a_zombie_in_the_same_database_is_rolled_back(
    app: Forge, crew: Crew, history: History, ledger: Ledger, gate: Gate
) -> None:
    """Fault 3 with `complete_in_transaction`: one effect, that of the attempt that counts."""
    await ledger.connection.execute("create table effects (what text)")
    job = await app.dispatch(once_in_transaction, gate.input)
    zombie = await crew.start()
    await until_started(history, job.id)
    zombie.sigstop()
    await crew.start()
    await until_started(history, job.id, lease=2)

    gate.open(lease=1)
    zombie.sigcont()
    await until(lambda: told(history, job.id, Kind.FINISHED), 30, "the zombie has tried")
    gate.open()

    await ledger.until_status(job.id, "completed")
    effects = await ledger.connection.fetch("select what from effects")
    assert [row["what"] for row in effects] == ["lease 2"]


async def test_a_worker_that_restarts_under_its_own_name_takes_over_at_once(
    app: Forge, crew: Crew, history: History, ledger: Ledger, gate: Gate
) -> None:
    """Fault 5: the jobs of the life before are rescued, and the old process is fenced."""
    name = uuid4()
    job = await app.dispatch(gated, gate.input)
    # Neither would be taken for dead in the time of this test.
    slowly = {"dead_after": "10m", "stale_threshold": "1h"}
    old = await crew.start(id=name, **slowly)
    await until_started(history, job.id)
    old.sigstop()

    new = await crew.start(id=name, **slowly)
    await until_started(history, job.id, lease=2)
    gate.open(lease=1)
    old.sigcont()

    assert await old.ended() == 0
    assert old.said("notice", message="another worker has taken this one's id; it stops")
    assert (await ledger.job(job.id))["status"] == "running"
    gate.open()
    row = await ledger.until_status(job.id, "completed")
    assert (row["lease"], row["attempts"]) == (2, 1)
    assert new.said("rescued", jobs=[str(job.id)])
    assert new.is_alive


async def test_an_earlier_life_does_not_give_back_what_a_later_one_runs(
    app: Forge, crew: Crew, history: History, ledger: Ledger, gate: Gate
) -> None:
    """Fault 5: the old process finds jobs under its name that it does not know, and leaves them.

    Its heart is slow here, so that for a while it does not learn that it was replaced.
    """
    name = uuid4()
    held = await app.dispatch(gated_in_process, gate.input)
    old = await crew.start(id=name, heartbeat_interval="5m", dead_after="10m")
    await until_started(history, held.id)
    looked = len(old.said("reconciled"))
    await crew.start(id=name)
    await until_started(history, held.id, lease=2)

    # It finds its job taken, finds it taken again and lets go, and looks a last time.
    await until(lambda: len(old.said("reconciled")) >= looked + 3, 30, "it looked for its jobs")

    row = await ledger.job(held.id)
    assert (row["status"], row["lease"]) == ("running", 2)


@pytest.mark.parametrize("handler", [gated, gated_in_thread, gated_in_process])
async def test_a_worker_stops_the_old_attempt_before_it_runs_its_own_former_job_again(
    handler: Any, app: Forge, crew: Crew, history: History, ledger: Ledger, gate: Gate
) -> None:
    """Fault 63: rescued by another worker while stopped, and claimed again by the same one."""
    job = await app.dispatch(handler, gate.input)
    zombie = await _reclaiming(job.id, crew, history, ledger)

    await until(lambda: len(told(history, job.id, Kind.STARTED)) > 1, 60, "it runs again")
    gate.open()

    row = await ledger.until_status(job.id, "completed")
    assert row["worker_id"] == zombie.id
    after = await app.dispatch(quick)
    await ledger.until_status(after.id, "completed")
    zombie.sigterm()
    assert await zombie.ended() == 0
    if handler is not gated_in_process:  # a killed process says nothing
        assert _overlaps(history, job.id) == []


async def test_an_attempt_that_will_not_stop_holds_up_the_next_one_of_its_job(
    app: Forge, crew: Crew, history: History, ledger: Ledger, gate: Gate
) -> None:
    """Fault 63: at most one attempt of a job is alive in a worker process."""
    job = await app.dispatch(deaf_to_cancel, gate.input)
    zombie = await _reclaiming(job.id, crew, history, ledger)
    await zombie.until_said("would not stop", lease=1)
    meanwhile = await app.dispatch(quick)
    await ledger.until_status(meanwhile.id, "completed")

    gate.open()

    row = await ledger.until_status(job.id, "completed")
    assert (row["lease"] > 1, row["worker_id"]) == (True, zombie.id)
    assert _overlaps(history, job.id) == []


async def test_a_worker_that_was_stopped_blames_no_handler(
    app: Forge, crew: Crew, history: History, ledger: Ledger, gate: Gate
) -> None:
    job = await app.dispatch(gated, gate.input)
    zombie = await _reclaiming(job.id, crew, history, ledger)

    def stood_still() -> list[str]:
        messages = [line["message"] for line in zombie.said("notice")]
        return [message for message in messages if "stood still" in message]

    said = await until(stood_still, 30, "it has noticed")
    gate.open()

    assert said[0].startswith("the whole process stood still for ")


async def test_a_worker_that_ends_gives_back_an_attempt_that_never_had_its_turn(
    app: Forge, crew: Crew, history: History, ledger: Ledger, gate: Gate
) -> None:
    """Fault 63: draining and releasing know of the attempt that waits."""
    job = await app.dispatch(deaf_to_cancel, gate.input)
    zombie = await _reclaiming(job.id, crew, history, ledger, shutdown_grace="200ms")
    await zombie.until_said("would not stop", lease=1)

    zombie.sigterm()

    row = await ledger.until_status(job.id, "pending")
    assert row["attempts"] == 0
    gate.open()
    assert await zombie.ended() == 0
    assert [event.lease for event in told(history, job.id, Kind.STARTED)] == [1]


async def _reclaiming(
    job_id: UUID, crew: Crew, history: History, ledger: Ledger, **settings: Any
) -> WorkerProcess:
    """Have a worker claim a job again that another rescued while it was stopped."""
    zombie = await crew.start(**settings)
    await until_started(history, job_id)
    zombie.sigstop()
    rescuer = await crew.start(jobs=["quick"])
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


async def test_a_zombie_claims_nothing_before_it_is_heard_of_again(
    app: Forge, crew: Crew, history: History, ledger: Ledger, gate: Gate, proxy: Proxy
) -> None:
    """Fault 3: what it claimed earlier than that would be taken from it, though it lives."""
    before = await app.dispatch(gated, gate.input)
    zombie = await crew.start(url=proxy.url())
    await until_started(history, before.id)
    rescuer = await crew.start(jobs=["quick"])
    zombie.sigstop()
    await rescuer.until_said("rescued", jobs=[str(before.id)])
    after = await app.dispatch(gated, gate.input)

    # Its heart has to find out first that its connection is dead.
    assert proxy.silence(matching="insert into forge_workers") >= 1
    zombie.sigcont()
    await until_started(history, after.id)
    await ledger.until_beating(zombie.id, 10)
    gate.open()

    row = await ledger.until_status(after.id, "completed")
    assert (row["lease"], row["crashes"]) == (1, 0)
    assert not rescuer.said("rescued", jobs=[str(after.id)])
