"""Real streaming replication: promotion after a crash and of a standby of a frozen primary."""

import asyncio
import time

from faultbench.postgres import Postgres
from faultbench.process import until
from faultbench.proxy import Proxy
from faultbench.registry import fault
from faultbench.rows.database import KINDS, check_effects, no_attempt_was_used_up
from faultbench.rows.patroni import crash_under_patroni
from faultbench.stage import Stage

SYNCHRONOUS = "select count(*) from pg_stat_replication where sync_state = 'sync'"


async def replicated(stage: Stage) -> tuple[Postgres, Postgres, Proxy]:
    """A primary, its synchronous standby, and the address that clients use."""
    primary = await stage.server(wal_level="replica", max_wal_senders="5", hot_standby="on")
    standby = await stage.standby(primary)
    primary.configure(synchronous_standby_names="'standby'")
    primary.reload()
    client = stage.client_of(primary.url())
    await until(lambda: client.value(SYNCHRONOUS), 30, "the standby is synchronous")
    return primary, standby, await stage.proxy(primary.url())


async def fail_over(standby: Postgres, proxy: Proxy) -> float:
    """Promote the standby and move the address there; returns when the new primary answers."""
    await asyncio.to_thread(standby.promote)
    proxy.point_at(standby.url())
    return time.monotonic()


@fault(
    19,
    "failover to a synchronous standby; the old primary comes back read-only",
    "nothing is lost; nothing is written to the old primary; work goes on",
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
    # It knows no other address than the old primary's.
    pinned = await stage.worker(before)
    dispatcher = stage.client_of(proxy.url)
    loading = asyncio.create_task(dispatcher.load(30, rate=20, dice=stage.dice, kinds=KINDS))
    await asyncio.sleep(stage.dice.uniform(5, 8))

    await primary.stop("immediate")
    promoted = await fail_over(standby, proxy)
    proxy.reset()
    await _come_back_read_only(primary)

    after = stage.client_of(standby.url())
    stage.recovered((await stage.until_started_since(promoted)).monotonic - promoted, within=10)
    await loading
    await stage.judge(after, timeout=90)
    await check_effects(stage, after)
    await no_attempt_was_used_up(stage, after)
    stage.require(all(worker.is_alive for worker in (*workers, pinned)), "a worker ended")
    stage.note("streaming replication: pg_basebackup, immediate stop, promote")


async def _come_back_read_only(primary: Postgres) -> None:
    """Start the old primary as a standby that follows nobody: it answers, and refuses writes."""
    (primary.data / "standby.signal").touch()
    await primary.start()
