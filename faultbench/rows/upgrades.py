"""Migrations and rolling upgrades under load.

A rolling upgrade comes from the previous version, whose wheel the upgrade tests keep. The next
version is this one with one more migration, copied into the run's folder: a schema change that a
release could contain, applied while workers of this version run.
"""

import asyncio
import shutil
import sys
import time
import zipfile

from faultbench.client import Client
from faultbench.outcome import PromiseBroken
from faultbench.process import ROOT, Process
from faultbench.registry import fault
from faultbench.stage import Stage

LONGEST_STALL = 2.0
MIGRATION = """
alter table forge_jobs add column faultbench_added integer not null default 7;
create function faultbench_added() returns integer language sql immutable as 'select 7';
"""
PREVIOUS = ROOT / "tests" / "upgrades" / "previous"


def _previous_version(stage: Stage) -> dict[str, str]:
    """Return an environment in which `forge` is the previous version."""
    (wheel,) = PREVIOUS.glob("*.whl")
    folder = stage.folder / "previous"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return {"PYTHONPATH": str(folder)}


async def _next_version(stage: Stage) -> dict[str, str]:
    """Return an environment in which `forge` is the next version."""
    folder = stage.folder / "next"
    await asyncio.to_thread(shutil.copytree, ROOT / "src", folder)
    migrations = folder / "forge" / "sql" / "migrations"
    last = max(int(path.name[:4]) for path in migrations.glob("*.sql"))
    (migrations / f"{last + 1:04}_faultbench.sql").write_text(MIGRATION)
    return {"PYTHONPATH": str(folder)}


def _migrating(stage: Stage, client: Client, env: dict[str, str]) -> Process:
    return stage.spawn(
        sys.executable, "-m", "forge.cli.main", "migrate", "--app", stage.workshop.app,
        env={"FORGE_DATABASE_URL": client.url, **env},
    )  # fmt: skip


async def _longest_stall(client: Client, until: "asyncio.Task[None]") -> float:
    """Return the longest time of a plain dispatch while a task ran."""
    longest = 0.0
    while not until.done():
        began = time.monotonic()
        await client.dispatch("work")
        longest = max(longest, time.monotonic() - began)
        await asyncio.sleep(0.005)
    return longest


@fault(
    42,
    "a migration during load",
    "no dispatch stalls for more than 2 s; this version keeps working",
)
async def migration_under_load(stage: Stage) -> None:
    client = await stage.client()
    env = await _next_version(stage)
    workers = [await stage.worker(client) for _ in range(2)]
    loader = stage.client_of(client.url)
    loading = asyncio.create_task(
        loader.load(25, rate=30, rng=stage.rng, kinds=("work", "effect", "flaky"))
    )
    await asyncio.sleep(3)
    migrate = _migrating(stage, client, env)
    watcher = stage.client_of(client.url)
    stall = await _longest_stall(watcher, loading)
    await loading
    if await migrate.ended(60):
        raise PromiseBroken(f"forge migrate failed: {migrate.log()[-300:]}")
    stage.recovered(stall, within=LONGEST_STALL)
    stage.require(await _has_migrated(client), "the migration was not applied")
    await stage.judge(client)
    stage.require(all(worker.is_alive for worker in workers), "a worker of this version exited")
    stage.note(f"the longest dispatch took {stall:.2f} s; add column with a default, new function")


async def _has_migrated(client: Client) -> bool:
    return bool(
        await client.value(
            "select count(*) from information_schema.columns "
            "where table_name = 'forge_jobs' and column_name = 'faultbench_added'"
        )
    )


@fault(
    60,
    "a rolling upgrade from the previous version",
    "no stall over 2 s, no lost job; both versions run at the same time",
)
async def rolling_upgrade(stage: Stage) -> None:
    previous = _previous_version(stage)
    client = stage.client_of(await stage.workshop.database_of(previous))
    old = [await stage.worker(client, env=previous) for _ in range(2)]
    loader = stage.client_of(client.url)
    loading = asyncio.create_task(
        loader.load(35, rate=25, rng=stage.rng, kinds=("work", "work_in_thread", "flaky"))
    )
    stalling = asyncio.create_task(_longest_stall(stage.client_of(client.url), loading))
    await asyncio.sleep(3)
    before = await _schema(client)
    migrate = _migrating(stage, client, {})
    if await migrate.ended(60):
        raise PromiseBroken(f"forge migrate failed: {migrate.log()[-300:]}")
    new = []
    for worker in old:
        new.append(await stage.worker(client))
        await asyncio.sleep(4)
        worker.terminate()
        stage.require(await worker.ended(60) == 0, f"an old worker exited with {worker.code}")
    await loading
    stage.recovered(await stalling, within=LONGEST_STALL)
    found = await stage.judge(client)
    ran = {event.pid for event in stage.starts()}
    stage.require(ran >= {worker.pid for worker in (*old, *new)}, "one version ran no jobs")
    stage.require(not found.stopped, f"handlers were stopped: {found.stopped}")
    versions = f"schema {before} to {await _schema(client)}"
    stage.note(f"from the previous version's wheel to this version, {versions}")


async def _schema(client: Client) -> int:
    return int(await client.value("select max(version) from forge_migrations"))
