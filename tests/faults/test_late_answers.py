"""Late answers to claims: the job runs once, or on another worker."""

from __future__ import annotations

from forge import Forge
from tests.faults.apps.handlers import gated, quick
from tests.faults.kit.history import History, Kind
from tests.faults.kit.ledger import Gate, Ledger, events_of, until_started
from tests.faults.kit.process import until
from tests.faults.kit.proxy import Proxy
from tests.faults.kit.worker_processes import Workers

CLAIM = "lease = lease + 1"


async def test_a_job_runs_once_when_the_answer_to_its_claim_is_late(
    app: Forge, workers: Workers, proxy: Proxy, history: History, ledger: Ledger, gate: Gate
) -> None:
    """Fault 21, a variant: the answer is not lost, but late.

    The worker closes the connection on which the server has answered but nothing arrives, and
    releases the job that it never received.
    """
    other = await app.dispatch(gated, gate.input)
    worker = await workers.start(url=proxy.url(), dead_after="60s")
    await until_started(history, other.id)
    hold = proxy.hold(matching=CLAIM)
    job = await app.dispatch(quick)
    await ledger.until_status(job.id, "running")
    assert hold.happened

    row = await ledger.until_status(job.id, "completed", timeout=60)
    hold.release()
    looks = len(worker.reported("reconciled"))
    await until(lambda: len(worker.reported("reconciled")) >= looks + 2, 60, "it compared its jobs")

    assert (row["lease"], row["attempts"]) == (2, 1)
    assert [event.lease for event in events_of(history, job.id, Kind.STARTED)] == [2]
    gate.open()


async def test_a_worker_does_not_run_jobs_it_claimed_before_it_was_declared_dead(
    app: Forge, workers: Workers, proxy: Proxy, history: History, ledger: Ledger
) -> None:
    """Fault 3: the answer arrives after the pause, when another worker owns the job."""
    zombie = await workers.start(url=proxy.url())
    hold = proxy.hold(matching=CLAIM)
    job = await app.dispatch(quick)
    await ledger.until_status(job.id, "running")
    zombie.sigstop()
    hold.release()

    await workers.start()
    row = await ledger.until_status(job.id, "completed")
    zombie.sigcont()
    await zombie.until_reported("refused", job=job.id, lease=1)

    assert row["lease"] == 2
    assert [event.lease for event in events_of(history, job.id, Kind.STARTED)] == [2]
