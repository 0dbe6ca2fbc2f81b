"""Mass failures, long runs, and more than one tenant."""

import asyncio
import statistics
import time
from pathlib import Path

from faultbench.client import Client
from faultbench.process import Process
from faultbench.registry import fault
from faultbench.stage import Stage

DELAYS = """
    select extract(epoch from job.scheduled_at - min(attempt.ended_at))::float8 as delay
    from forge_jobs as job
    join forge_attempts as attempt on attempt.job_id = job.id
    group by job.id
"""


@fault(35, "1,000 jobs fail at once", "their retries are spread out")
async def failures(stage: Stage) -> None:
    client = await stage.client()
    await _dispatch_all(client, "failing", 1000)
    await stage.worker(client, max_concurrent=100, batch_size=100)
    await client.until_final(120)
    delays = sorted(row["delay"] for row in await client.fetch(DELAYS))
    stage.require(len(delays) == 1000, f"{len(delays)} of 1,000 retries were recorded")
    width = delays[-1] - delays[0]
    busiest = max(sum(low <= d < low + 0.08 for d in delays) for low in delays[::20])
    stage.note(
        f"delays from {delays[0]:.2f} s to {delays[-1]:.2f} s, {busiest} in the busiest 80 ms"
    )
    stage.require(width > 0.5, f"all retries are within {width:.2f} s")
    stage.require(busiest < 250, f"{busiest} retries within 80 ms")
    dead = await client.value("select count(*) from forge_jobs where status = 'dead_letter'")
    stage.require(dead == 1000, f"{dead} of 1,000 became dead letters after their attempts")
    stage.outcome.jobs, stage.outcome.lost = 1000, 0


async def _dispatch_all(client: Client, job_type: str, count: int) -> None:
    await client.execute(
        f"select forge_dispatch('{job_type}', '{{}}', notify => n = {count}) "
        f"from generate_series(1, {count}) as n"
    )


ABANDON = """
    update forge_jobs
    set status = case when n <= {running} then 'running' else 'claimed' end, lease = lease + 1,
        worker_id = '{worker}', claimed_at = now() - interval '1 hour',
        started_at = now() - interval '1 hour', last_heartbeat = now() - interval '1 hour'
    from (select id as job, row_number() over (order by id) as n from forge_jobs) as numbered
    where id = job
"""


@fault(36, "1,000 leases expire at once", "rescued in batches; none is dead-lettered")
async def expired_leases(stage: Stage) -> None:
    client = await stage.client()
    await _dispatch_all(client, "empty", 1000)
    # Their worker is unknown, as after an incident that deleted the workers' rows.
    unknown = "00000000-0000-4000-8000-000000000001"
    await client.execute(ABANDON.format(running=10, worker=unknown))
    began = time.monotonic()
    await stage.worker(client, stale_threshold="10s", max_concurrent=50)
    await client.until_final(180)
    stage.recovered(time.monotonic() - began)
    counts = dict(await client.fetch("select status, count(*) from forge_jobs group by status"))
    stage.require(counts == {"completed": 1000}, f"statuses: {counts}")
    batches = await client.fetch(
        "select date_trunc('milliseconds', at) as moment, count(*) as size from faultbench_moves "
        "where becomes in ('retry', 'pending') group by 1"
    )
    stage.note(
        f"rescued in {len(batches)} batches of at most {max(row['size'] for row in batches)}"
    )
    stage.outcome.jobs, stage.outcome.lost = 1000, 0


@fault(
    41,
    "a long run (minutes; --soak 24h)",
    "memory, descriptors and threads stay flat",
    timeout=600,
)
async def soak(stage: Stage) -> None:
    client = await stage.client()
    seconds = stage.soak or 150
    worker = await stage.worker(client, max_concurrent=20)
    dispatcher = stage.client_of(client.url)
    kinds = ("work", "work", "work_in_thread", "effect", "flaky", "querying")
    loading = asyncio.create_task(
        dispatcher.load(seconds, rate=40, rng=stage.rng, kinds=kinds, longest=0.05)
    )
    samples: list[tuple[float, int, int, int]] = []
    every = max(1.0, seconds / 300)
    while not loading.done():
        samples.append((time.monotonic(), *_size(worker)))
        await asyncio.sleep(every)
    await loading
    found = await stage.judge(client, timeout=120)
    # The first part warms up caches, pools and the allocator.
    kept = samples[len(samples) // 3 :]
    hours = [(at - kept[0][0]) / 3600 for at, *_ in kept]
    slopes = [
        statistics.linear_regression(hours, [sample[column] for sample in kept]).slope
        for column in (1, 2, 3)
    ]
    growth = [kept[-1][column] - kept[0][column] for column in (1, 2, 3)]
    stage.note(
        f"{seconds / 60:.1f} minutes, {found.jobs} jobs; RSS {kept[-1][1] / 1024:.0f} MB, "
        f"{slopes[0] / 1024:+.1f} MB/h; descriptors {kept[-1][2]} ({growth[1]:+d}), "
        f"threads {kept[-1][3]} ({growth[2]:+d})"
    )
    stage.require(growth[0] < 10 * 1024, f"RSS grew by {growth[0] / 1024:.1f} MB after warm-up")
    stage.require(abs(growth[1]) <= 8, f"descriptors grew by {growth[1]}")
    stage.require(abs(growth[2]) <= 8, f"threads grew by {growth[2]}")


def _size(process: Process) -> tuple[int, int, int]:
    """Resident memory in KB, open descriptors, threads."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    values = dict(line.split(":", 1) for line in status.splitlines())
    resident = int(values["VmRSS"].split()[0])
    descriptors = len(list(Path(f"/proc/{process.pid}/fd").iterdir()))
    return resident, descriptors, int(values["Threads"])


@fault(
    45,
    "tenant A floods",
    "tenant B is served in bounded time if it has its own queue",
)
async def flood(stage: Stage) -> None:
    client = await stage.client()
    await stage.worker(client, "--queue=default")
    await stage.worker(client, "--queue=b")
    await client.execute(
        """select forge_dispatch('work', '{"seconds": 0.05}', tenant_id => 1) """
        "from generate_series(1, 6000)"
    )
    waits: dict[str, list[float]] = {"b": [], "default": []}
    for _ in range(40):
        for queue in ("b", "default"):
            dispatched = time.monotonic()
            mark = await client.dispatch("work", options=f", tenant_id => 2, queue => '{queue}'")
            if queue == "b":
                (event,) = await stage.until_started(mark, timeout=30)
                waits[queue].append(max(0.0, event.monotonic - dispatched))
    worst = sorted(waits["b"])[-1]
    stage.recovered(worst, within=3)
    behind = await client.value(
        "select count(*) from forge_jobs "
        "where tenant_id = 2 and queue = 'default' and status = 'pending'"
    )
    stage.note(
        f"B's own queue: {statistics.median(waits['b']):.2f} s median, {worst:.2f} s at most; "
        f"in A's queue {behind} of 40 still waited behind A's jobs "
        "(there are no lanes per tenant yet)"
    )
    stage.outcome.jobs, stage.outcome.lost = 6080, 0


@fault(
    62,
    "17, 100 and 1,000 job types, most kept busy",
    "the oldest job of a priority starts within the stated bound",
    timeout=420,
)
async def many_types(stage: Stage) -> None:
    for types, bound in ((17, 5.0), (100, 5.0), (1000, 20.0)):
        client = stage.client_of(await stage.workshop.database())
        env = {"FAULTBENCH_TYPES": str(types)}
        worker = await stage.worker(client, app="faultbench.apps.many:app", env=env)
        await client.until_known(f"type_{types - 1}", timeout=90)
        feeding = asyncio.create_task(_feed(client, types))
        try:
            await asyncio.sleep(5)
            waits = []
            for _ in range(5):
                dispatched = time.monotonic()
                mark = await client.dispatch(f"type_{types - 1}")
                (event,) = await stage.until_started(mark, timeout=90)
                waits.append(max(0.0, event.monotonic - dispatched))
        finally:
            feeding.cancel()
        worker.kill()
        stage.note(f"{types} types: {max(waits):.1f} s at most, bound {bound:g} s")
        stage.recovered(max(waits), within=bound)


async def _feed(client: Client, types: int) -> None:
    """Keep a few jobs waiting in every lane except the last."""
    feeder = Client(client.url, client.history)
    fill = """
        select forge_dispatch(name, '{}', notify => true) from forge_job_types
        where name like 'type\\_%' and name <> $1
        and (select count(*) from forge_jobs where job_type = name and status = 'pending') < 2
    """
    try:
        while True:
            await feeder.fetch(fill, f"type_{types - 1}")
            await asyncio.sleep(0.1)
    finally:
        await feeder.close()


@fault(
    65,
    "completions are faster than pruning",
    "the history of jobs stays bounded",
    timeout=360,
)
async def pruning(stage: Stage) -> None:
    client = await stage.client()
    env = {"FORGE_RETENTION_COMPLETED": "5s", "FORGE_RETENTION_FAILED": "5s"}
    await stage.worker(client, env=env, max_concurrent=100, batch_size=100)
    sizes: list[int] = []
    done, began = 0, time.monotonic()
    while time.monotonic() < began + PRUNED_FOR:
        await _dispatch_all(client, "empty", 4000)
        await client.until_final(60)
        done += 4000
        sizes.append(await client.value("select count(*) from forge_jobs"))
    rate = done / (time.monotonic() - began)
    # Completions during the retention, the minute between two prunes, and the prune itself.
    bound = rate * (5 + 60 + 30)
    stage.note(
        f"{done} jobs at {rate:.0f}/s with 5 s of retention: {max(sizes)} rows at most, "
        f"{sizes[-1]} at the end, bound {bound:.0f}"
    )
    stage.require(max(sizes) < bound, f"{max(sizes)} rows were kept")
    stage.outcome.jobs, stage.outcome.lost = done, 0


PRUNED_FOR = 160.0
