"""Claims whose answers take long: what they bring is run once, or not by this worker."""

from __future__ import annotations

from forge import Forge
from tests.faults.apps.handlers import gated, quick
from tests.faults.kit.crew import Crew
from tests.faults.kit.history import History, Kind
from tests.faults.kit.ledger import Gate, Ledger, told, until_started
from tests.faults.kit.process import until
from tests.faults.kit.proxy import Proxy

CLAIM = "lease = lease + 1"


async def test_a_job_runs_once_where_the_answer_to_its_claim_does_not_come(
    app: Forge, crew: Crew, proxy: Proxy, history: History, ledger: Ledger, gate: Gate
) -> None:
    """Fault 21, the other way round: the answer is not lost, it only takes long.

    The worker ends the connection on which the server has answered and nothing arrives, and gives
    the job back that it never received.
    """
    other = await app.dispatch(gated, gate.input)
    worker = await crew.start(url=proxy.url(), dead_after="60s")
    await until_started(history, other.id)
    hold = proxy.hold(matching=CLAIM)
    job = await app.dispatch(quick)
    await ledger.until_status(job.id, "running")
    assert hold.happened

    row = await ledger.until_status(job.id, "completed", timeout=60)
    hold.release()
    looks = len(worker.said("reconciled"))
    await until(lambda: len(worker.said("reconciled")) >= looks + 2, 60, "it compared its jobs")

    assert (row["lease"], row["attempts"]) == (2, 1)
    assert [event.lease for event in told(history, job.id, Kind.STARTED)] == [2]
    gate.open()


async def test_a_worker_does_not_run_what_it_claimed_before_it_was_taken_for_dead(
    app: Forge, crew: Crew, proxy: Proxy, history: History, ledger: Ledger
) -> None:
    """Fault 3: the answer lies there when it wakes up, and the job is another's by then."""
    zombie = await crew.start(url=proxy.url())
    hold = proxy.hold(matching=CLAIM)
    job = await app.dispatch(quick)
    await ledger.until_status(job.id, "running")
    zombie.sigstop()
    hold.release()

    await crew.start()
    row = await ledger.until_status(job.id, "completed")
    zombie.sigcont()
    await zombie.until_said("refused", job=job.id, lease=1)

    assert row["lease"] == 2
    assert [event.lease for event in told(history, job.id, Kind.STARTED)] == [2]
