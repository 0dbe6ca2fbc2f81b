"""Lost notifications: jobs are found by polling, and the worker listens again."""

from __future__ import annotations

import pytest

from forge import Forge
from tests.faults.apps.handlers import quick
from tests.faults.kit.ledger import Ledger
from tests.faults.kit.process import until
from tests.faults.kit.proxy import Mode, Proxy
from tests.faults.kit.worker_processes import Workers
from tests.faults.scenarios import LISTENING, Scenario

LISTENERS = (
    "select pid from pg_stat_activity where datname = current_database() "
    "and query ilike 'listen \"forge_%'"
)


async def test_a_terminated_listener_listens_again(
    app: Forge, workers: Workers, ledger: Ledger
) -> None:
    """Fault 14: a job that was sent meanwhile is found."""
    # So rarely that a poll cannot be what finds the job.
    await workers.start(idle_poll_interval="1h")
    pid = await until(lambda: ledger.connection.fetchval(LISTENERS), 30, "the worker listens")

    await ledger.connection.execute("select pg_terminate_backend($1)", pid)
    job = await app.dispatch(quick)

    await ledger.until_status(job.id, "completed")
    again = await until(lambda: ledger.connection.fetchval(LISTENERS), 30, "it listens again")
    assert again != pid


async def test_a_worker_that_cannot_listen_polls(
    app: Forge, workers: Workers, ledger: Ledger, proxy: Proxy
) -> None:
    """Fault 14: the listener is terminated repeatedly."""
    await workers.start(url=proxy.url(), idle_poll_interval="1h")
    await until(lambda: proxy.reset(matching=LISTENING), 30, "the worker listens")

    for _ in range(5):
        proxy.reset(matching=LISTENING)
        job = await app.dispatch(quick)
        proxy.reset(matching=LISTENING)
        await ledger.until_status(job.id, "completed")


async def test_a_silently_dead_listener_is_detected(
    scenario: Scenario, proxy: Proxy, ledger: Ledger
) -> None:
    """Fault 15: the job is found, a notice is logged, and the worker listens again."""
    await scenario.silent_listener(proxy)

    (worker,) = scenario.workers.processes
    await worker.until_reported(
        "notice", message="notifications do not arrive; polling, and opening a new listener"
    )
    await until(lambda: proxy.silence(matching=LISTENING), 30, "the worker listens again")


async def test_a_listener_that_dies_during_listen_tries_again(
    app: Forge, workers: Workers, ledger: Ledger, proxy: Proxy
) -> None:
    """Fault 15: the worker polls meanwhile."""
    await workers.start(url=proxy.url(), idle_poll_interval="1h")
    await until(lambda: proxy.reset(matching=LISTENING), 30, "the worker listens")
    # It has sent LISTEN, and the answer never arrives.
    await until(lambda: proxy.silence(matching=LISTENING), 30, "the worker listens again")
    job = await app.dispatch(quick)

    await ledger.until_status(job.id, "completed")
    await until(lambda: proxy.silence(matching=LISTENING) > 1, 30, "the worker has begun once more")


@pytest.mark.slow
async def test_a_worker_replaces_silently_dead_connections(
    app: Forge, workers: Workers, ledger: Ledger, proxy: Proxy
) -> None:
    """Fault 15: every connection of a worker, as when a firewall drops them."""
    worker = await workers.start(url=proxy.url())
    proxy.silence()
    job = await app.dispatch(quick)

    row = await ledger.until_status(job.id, "completed", timeout=60)

    assert row["attempts"] == 1
    assert worker.is_alive
    assert proxy.mode == Mode.PASS
