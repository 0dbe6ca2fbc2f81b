"""Notifications that never arrive: jobs are found all the same, and hearing comes back."""

from __future__ import annotations

import pytest

from forge import Forge
from tests.faults.apps.handlers import quick
from tests.faults.kit.crew import Crew
from tests.faults.kit.ledger import Ledger
from tests.faults.kit.process import until
from tests.faults.kit.proxy import Mode, Proxy
from tests.faults.scenes import LISTENING, Scene

LISTENERS = (
    "select pid from pg_stat_activity where datname = current_database() "
    "and query ilike 'listen \"forge_%'"
)


async def test_a_terminated_listener_listens_again(app: Forge, crew: Crew, ledger: Ledger) -> None:
    """Fault 14: and what was sent meanwhile is found."""
    # Too seldom for a poll to be what finds the job.
    await crew.start(idle_poll_interval="1h")
    pid = await until(lambda: ledger.connection.fetchval(LISTENERS), 30, "the worker listens")

    await ledger.connection.execute("select pg_terminate_backend($1)", pid)
    job = await app.dispatch(quick)

    await ledger.until_status(job.id, "completed")
    again = await until(lambda: ledger.connection.fetchval(LISTENERS), 30, "it listens again")
    assert again != pid


async def test_a_worker_that_cannot_listen_polls(
    app: Forge, crew: Crew, ledger: Ledger, proxy: Proxy
) -> None:
    """Fault 14: the listener is terminated again and again, and never gets far."""
    await crew.start(url=proxy.url(), idle_poll_interval="1h")
    await until(lambda: proxy.reset(matching=LISTENING), 30, "the worker listens")

    for _ in range(5):
        proxy.reset(matching=LISTENING)
        job = await app.dispatch(quick)
        proxy.reset(matching=LISTENING)
        await ledger.until_status(job.id, "completed")


async def test_a_listener_that_died_without_a_sound_is_noticed(
    scene: Scene, proxy: Proxy, ledger: Ledger
) -> None:
    """Fault 15: the job is found, the deafness is told, and hearing comes back."""
    await scene.silent_listener(proxy)

    (worker,) = scene.crew.workers
    await worker.until_said(
        "notice", message="the listener does not hear; polling, and listening anew"
    )
    await until(lambda: proxy.silence(matching=LISTENING), 30, "the worker listens again")


async def test_a_listener_that_dies_while_it_begins_to_listen_tries_again(
    app: Forge, crew: Crew, ledger: Ledger, proxy: Proxy
) -> None:
    """Fault 15: polling all the while."""
    await crew.start(url=proxy.url(), idle_poll_interval="1h")
    await until(lambda: proxy.reset(matching=LISTENING), 30, "the worker listens")
    # It has asked to listen, and the answer never comes.
    await until(lambda: proxy.silence(matching=LISTENING), 30, "the worker begins anew")
    job = await app.dispatch(quick)

    await ledger.until_status(job.id, "completed")
    await until(lambda: proxy.silence(matching=LISTENING) > 1, 30, "the worker has begun once more")


@pytest.mark.slow
async def test_all_connections_dead_without_a_sound_come_back(
    app: Forge, crew: Crew, ledger: Ledger, proxy: Proxy
) -> None:
    """Fault 15 for every connection of a worker, as when a firewall forgets them."""
    worker = await crew.start(url=proxy.url())
    proxy.silence()
    job = await app.dispatch(quick)

    row = await ledger.until_status(job.id, "completed", timeout=60)

    assert row["attempts"] == 1
    assert worker.is_alive
    assert proxy.mode == Mode.PASS
