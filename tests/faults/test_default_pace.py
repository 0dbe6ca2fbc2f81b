"""The promise of ten seconds, with the settings that a worker has when nobody sets any."""

from __future__ import annotations

from forge import Forge
from forge.config import WorkerConfig
from forge.core.duration import format_duration
from tests.faults.apps.handlers import gated, quick
from tests.faults.kit.crew import PACE, Crew
from tests.faults.kit.history import History
from tests.faults.kit.ledger import Gate, Ledger, until_started
from tests.faults.kit.process import until

PROMISED = 10.0
PLAIN = WorkerConfig()
DEFAULTS = {
    name: format_duration(getattr(PLAIN, name))
    for name in PACE
    if name not in ("shutdown_grace", "metrics_port")
}


async def test_the_jobs_of_a_killed_worker_run_again_within_ten_seconds(
    app: Forge, crew: Crew, history: History, ledger: Ledger, gate: Gate
) -> None:
    """Fault 1."""
    job = await app.dispatch(gated, gate.input)
    victim = await crew.start(**DEFAULTS)
    await until_started(history, job.id)
    rescuer = await crew.start(**DEFAULTS)
    # Long enough for it to be a judge, which takes as long as a dead worker is waited for.
    await ledger.until_beating(rescuer.id, 4)

    victim.sigkill()
    again = await until_started(history, job.id, lease=2)

    (halt,) = victim.halts
    assert again.monotonic - halt.monotonic < PROMISED
    gate.open()
    await ledger.until_status(job.id, "completed")


async def test_a_worker_that_starts_after_the_last_one_died_takes_its_jobs_before_long(
    app: Forge, crew: Crew, history: History, ledger: Ledger, gate: Gate
) -> None:
    """Fault 1: nobody was there to see it die."""
    job = await app.dispatch(gated, gate.input)
    victim = await crew.start(**DEFAULTS)
    await until_started(history, job.id)
    victim.sigkill()

    heir = await crew.start(**DEFAULTS)
    other = await app.dispatch(quick)
    await ledger.until_status(other.id, "completed")
    await until(lambda: heir.said("rescued", jobs=[str(job.id)]), PROMISED, "it took the job over")

    await until_started(history, job.id, lease=2)
    gate.open()
    await ledger.until_status(job.id, "completed")
