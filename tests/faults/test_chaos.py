"""Chaos runs: no job is lost, none runs unexpectedly, and no stale write is accepted."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from forge.store.connection.database import Database
from forge.store.embedded import Cluster
from forge.store.migrate import migrate
from tests.faults.chaos import Chaos, Plan
from tests.faults.chaos_faults import (
    backends_of,
    kill_of,
    kill_worker,
    network_of,
    pause_worker,
    restart_of,
    stop_worker,
)
from tests.faults.kit.checker import Verdict
from tests.faults.kit.history import History, Kind
from tests.faults.kit.proxy import Proxy
from tests.faults.kit.server import running_server
from tests.faults.kit.worker_processes import Workers

WORKER_FAULTS = (kill_worker, pause_worker, stop_worker)


@pytest.fixture
def durable() -> Iterator[Cluster]:
    with running_server() as server:
        yield server


@pytest.fixture
def seed() -> int:
    """The seed from the environment, or a new one; the run prints it."""
    return int(os.environ.get("FAULTS_SEED") or random.randrange(1_000_000))


@pytest.mark.timeout(300)
async def test_no_job_is_lost_in_a_short_chaos_run(
    durable: Cluster, seed: int, history: History, tmp_path: Path
) -> None:
    """Faults 1, 3, 12, 13 and 17 together."""
    at_least = ((0.2, kill_worker), (0.4, pause_worker), (0.6, restart_of(durable)))
    plan = Plan(seed, jobs=2500, seconds=15, faults=WORKER_FAULTS, once=at_least)

    verdict = await _play(plan, durable, durable.url(), history, tmp_path)

    assert not verdict.faults, f"seed {seed}: {verdict}"


@pytest.mark.slow
@pytest.mark.timeout(3600)
async def test_no_job_is_lost_in_a_long_chaos_run(
    durable: Cluster, seed: int, history: History, tmp_path: Path
) -> None:
    """Faults 1, 3, 12 to 15, 17, 18 and 21 together, for FAULTS_SECONDS."""
    seconds = float(os.environ.get("FAULTS_SECONDS", "600"))
    with Proxy.in_thread(durable.url(tcp=True), seed=seed) as proxy:
        faults = (
            *WORKER_FAULTS,
            *network_of(proxy),
            backends_of(durable),
            restart_of(durable),
            kill_of(durable),
        )
        plan = Plan(seed, jobs=int(seconds * 100), seconds=seconds, faults=faults)

        verdict = await _play(plan, durable, proxy.url(), history, tmp_path)

    assert not verdict.faults, f"seed {seed}: {verdict}"


async def _play(
    plan: Plan, server: Cluster, workers_url: str, history: History, folder: Path
) -> Verdict:
    print(f"FAULTS_SEED={plan.seed}")
    database = Database(server.url())
    await migrate(database)
    await database.close()
    with Workers(workers_url, history, folder) as workers:
        verdict = await Chaos(plan, server.url(), workers, history).run()
    print(f"{len(workers.processes)} workers, {len(workers.halts)} halts: {verdict}")
    _print_findings(verdict, history, workers)
    accepted = {event.job for event in history.events() if event.kind == Kind.ACCEPTED}
    assert len(accepted) > plan.jobs / 2, "the recording of acks does not work"
    return verdict


def _print_findings(verdict: Verdict, history: History, workers: Workers) -> None:
    """Print the events of the jobs that are part of a finding."""
    concerned = {job for jobs in verdict.faults.values() for job in jobs}
    for event in history.events():
        if event.job in concerned:
            print(
                event.job,
                f"{event.monotonic:.3f}",
                event.kind,
                event.lease,
                event.pid,
                event.status,
            )
    for halt in workers.halts if concerned else ():
        print(f"{halt.monotonic:.3f} halt of {halt.pid}")
