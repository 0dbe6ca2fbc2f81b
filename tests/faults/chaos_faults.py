"""The faults of a chaos run."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable

import asyncpg

from forge.store.embedded import Cluster
from tests.faults.chaos import LONGEST_PAUSE, Chaos, Fault
from tests.faults.kit.process import wait_until
from tests.faults.kit.proxy import Mode, Proxy
from tests.faults.kit.worker_processes import WorkerProcess

# Statements whose answer is lost after the commit.
CUTS = (
    "set status = 'completed'",
    "lease = lease + 1",
    "insert into forge_dead_letters",
    "insert into forge_workers",
)


async def kill_worker(chaos: Chaos) -> None:
    """SIGKILL a worker and start another."""
    if chaos.healthy:
        chaos.random.choice(chaos.healthy).sigkill()
        await chaos.start_worker()


async def pause_worker(chaos: Chaos) -> None:
    """SIGSTOP a worker; SIGCONT it before or after it is declared dead."""
    if len(chaos.healthy) > 1:
        victim = chaos.random.choice(chaos.healthy)
        chaos.paused.add(victim)
        victim.sigstop()
        chaos.run_in_background(_continue(chaos, victim, chaos.random.uniform(0.5, LONGEST_PAUSE)))


async def stop_worker(chaos: Chaos) -> None:
    """SIGTERM a worker, sometimes twice, and start another."""
    if chaos.healthy:
        victim = chaos.random.choice(chaos.healthy)
        victim.sigterm()
        if chaos.random.random() < 0.3:
            await victim.until_reported("stopping")
            victim.sigterm()
        await victim.ended(60)
        await chaos.start_worker()


def restart_of(server: Cluster) -> Fault:
    """Stop PostgreSQL without a checkpoint and start it again."""

    def restart() -> None:
        server.stop("immediate")
        server.start()

    return _in_thread(restart)


def kill_of(server: Cluster) -> Fault:
    """SIGKILL the main process of PostgreSQL."""

    def kill() -> None:
        pid = server.pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: server.pid != pid, 30, "the server is dead")
        server.start()

    return _in_thread(kill)


def backends_of(server: Cluster) -> Fault:
    """Terminate a few random sessions."""

    async def terminate(chaos: Chaos) -> None:
        connection = await asyncpg.connect(server.url())
        await connection.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity "
            "where pid <> pg_backend_pid() and backend_type = 'client backend' and random() < 0.3"
        )
        await connection.close()

    return terminate


def network_of(proxy: Proxy) -> tuple[Fault, ...]:
    """Reset connections, silence them, slow them down, or lose the answers to commits."""

    async def reset(chaos: Chaos) -> None:
        proxy.reset()

    async def silence(chaos: Chaos) -> None:
        proxy.silence(matching=lambda text: "forge_wake" in text)

    async def slow_down(chaos: Chaos) -> None:
        proxy.mode = Mode.delay(20, jitter=80)
        await asyncio.sleep(2)  # the duration of the fault: a slow network
        proxy.mode = Mode.PASS

    async def cut(chaos: Chaos) -> None:
        proxy.cut_after_commit(matching=chaos.random.choice(CUTS))

    return reset, silence, slow_down, cut


async def _continue(chaos: Chaos, victim: WorkerProcess, seconds: float) -> None:
    await asyncio.sleep(seconds)  # the duration of the fault: a paused worker
    victim.sigcont()
    chaos.paused.discard(victim)


def _in_thread(act: Callable[[], None]) -> Fault:
    async def fault(chaos: Chaos) -> None:
        await asyncio.to_thread(act)

    return fault
