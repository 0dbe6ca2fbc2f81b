"""Streaming replication: promotion after a crash of the primary."""

import asyncio
import time

from faultbench.postgres import Postgres
from faultbench.process import until
from faultbench.proxy import Proxy
from faultbench.registry import fault
from faultbench.rows.database import KINDS, check_effects, require_no_attempt_used
from faultbench.rows.patroni import crash_under_patroni
from faultbench.stage import Stage

SYNCHRONOUS = "select count(*) from pg_stat_replication where sync_state = 'sync'"


async def replicated(stage: Stage) -> tuple[Postgres, Postgres, Proxy]:
    """Start a primary, its synchronous standby and the proxy that clients connect to."""
    primary = await stage.server(wal_level="replica", max_wal_senders="5", hot_standby="on")
    standby = await stage.standby(primary)
    primary.configure(synchronous_standby_names="'standby'")
    primary.reload()
    client = stage.client_of(primary.url())
    await until(lambda: client.value(SYNCHRONOUS), 30, "the standby is synchronous")
    return primary, standby, await stage.proxy(primary.url())


async def fail_over(standby: Postgres, proxy: Proxy) -> float:
    """Promote the standby and point the proxy at it; return the time when it is ready."""
    await asyncio.to_thread(standby.promote)
    proxy.point_at(standby.url())
    return time.monotonic()


@fault(
    19,
    "failover to a synchronous standby; the old primary comes back read-only",
    "nothing is lost; nothing is written to the old primary; work continues",
    runs=2,
    timeout=300,
)
async def crash_of_the_primary(stage: Stage) -> None:
    if stage.run == 2:
        await crash_under_patroni(stage)
        return
    primary, standby, proxy = await replicated(stage)
    before = stage.client_of(primary.url())
    workers = [await stage.worker(before, url=proxy.url) for _ in range(2)]
    # This worker only has the address of the old primary.
    pinned = await stage.worker(before)
    dispatcher = stage.client_of(proxy.url)
    loading = asyncio.create_task(dispatcher.load(30, rate=20, rng=stage.rng, kinds=KINDS))
    await asyncio.sleep(stage.rng.uniform(5, 8))

    await primary.stop("immediate")
    promoted = await fail_over(standby, proxy)
    proxy.reset()
    await _come_back_read_only(primary)

    after = stage.client_of(standby.url())
    stage.recovered((await stage.until_started_since(promoted)).monotonic - promoted, within=10)
    await loading
    await stage.judge(after, timeout=90)
    await check_effects(stage, after)
    await require_no_attempt_used(stage, after)
    stage.require(all(worker.is_alive for worker in (*workers, pinned)), "a worker exited")
    stage.note("streaming replication: pg_basebackup, immediate stop, promote")


async def _come_back_read_only(primary: Postgres) -> None:
    """Start the old primary as a standby without an upstream, which rejects writes."""
    (primary.data / "standby.signal").touch()
    await primary.start()
