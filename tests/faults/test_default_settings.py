"""With the default settings, jobs of a dead worker run again within ten seconds."""

from __future__ import annotations

from forge import Forge
from forge.config.settings import WorkerConfig
from forge.core.duration import format_duration
from tests.faults.apps.handlers import gated, quick
from tests.faults.kit.history import History
from tests.faults.kit.ledger import Gate, Ledger, until_started
from tests.faults.kit.process import until
from tests.faults.kit.worker_processes import PACE, Workers

PROMISED = 10.0
PLAIN = WorkerConfig()
DEFAULTS = {
    name: format_duration(getattr(PLAIN, name))
    for name in PACE
    if name not in ("shutdown_grace", "metrics_port")
}


async def test_the_jobs_of_a_killed_worker_run_again_within_ten_seconds(
    app: Forge, workers: Workers, history: History, ledger: Ledger, gate: Gate
) -> None:
    """Fault 1."""
    job = await app.dispatch(gated, gate.input)
    victim = await workers.start(**DEFAULTS)
    await until_started(history, job.id)
    rescuer = await workers.start(**DEFAULTS)
    # Long enough that it may declare workers dead, which takes `dead_after`.
    await ledger.until_beating(rescuer.id, 4)

    victim.sigkill()
    again = await until_started(history, job.id, lease=2)

    (halt,) = victim.halts
    assert again.monotonic - halt.monotonic < PROMISED
    gate.open()
    await ledger.until_status(job.id, "completed")


async def test_a_new_worker_rescues_the_jobs_of_one_that_died_before(
    app: Forge, workers: Workers, history: History, ledger: Ledger, gate: Gate
) -> None:
    """Fault 1: no other worker was running when it died."""
    job = await app.dispatch(gated, gate.input)
    victim = await workers.start(**DEFAULTS)
    await until_started(history, job.id)
    victim.sigkill()

    successor = await workers.start(**DEFAULTS)
    other = await app.dispatch(quick)
    await ledger.until_status(other.id, "completed")
    await until(
        lambda: successor.reported("rescued", jobs=[str(job.id)]), PROMISED, "it rescued the job"
    )

    await until_started(history, job.id, lease=2)
    gate.open()
    await ledger.until_status(job.id, "completed")
