"""Processes in containers, forked by handlers, and replaced by deploys."""

import functools
import os
import shutil
import time
from pathlib import Path

from faultbench.client import Client
from faultbench.history import Kind
from faultbench.outcome import CannotRun
from faultbench.process import until
from faultbench.registry import fault
from faultbench.stage import Stage


@fault(32, "a job whose type an old worker does not have", "it stays queued for a new worker")
async def unknown_type(stage: Stage) -> None:
    client = await stage.client()
    old = await stage.worker(client, app="faultbench.apps.older:app")
    await client.until_known("known_to_all")
    waiting = await client.dispatch_many(5, "work")
    known = await client.dispatch_many(5, "known_to_all")
    await stage.until_ended(*known)
    rows = [await client.job(mark) for mark in waiting]
    stage.require({row["status"] for row in rows} == {"pending"}, "the old worker touched them")
    await stage.worker(client)
    await stage.judge(client)
    stage.require(old.is_alive, "the old worker exited")


@fault(
    39,
    "a running job is cancelled, and one whose attempt was replaced",
    "the right attempt stops; the job stays cancelled",
)
async def cancelled(stage: Stage) -> None:
    client = await stage.client()
    worker = await stage.worker(client)
    gate = stage.gate()
    kinds = ("work", "work_in_thread", "work_in_process", "reporting")
    marks = [await client.dispatch(kind, **gate.input) for kind in kinds]
    kept = await client.dispatch_many(2, "work", **gate.input)
    await stage.until_started(*marks, *kept)
    requested = time.monotonic()
    for mark in marks:
        await _cancel(stage, client, mark)
    for mark in marks:
        await client.until_status(mark, "cancelled", timeout=20)
    await stage.until_ended(*marks[:2], marks[3], timeout=15)
    stage.recovered(time.monotonic() - requested)

    replaced = await client.dispatch("work", **gate.input)
    await stage.until_started(replaced)
    worker.pause()
    await stage.worker(client)
    await stage.until_started(replaced, lease=2, timeout=40)
    await _cancel(stage, client, replaced)
    await client.until_status(replaced, "cancelled", timeout=30)
    gate.open()
    worker.resume()
    await stage.until_alive(client, worker, since=time.time())
    found = await stage.judge(client, allow=("unsuccessful", "overlapping"))
    stage.require(
        set(found.unsuccessful) == {*marks, replaced},
        f"other jobs did not complete: {found.unsuccessful}",
    )


async def _cancel(stage: Stage, client: Client, mark: str) -> None:
    job = await client.job(mark)
    code = await stage.forge(client, "jobs", "cancel", str(job["id"])).ended(60)
    stage.require(code == 0, f"forge jobs cancel exited with {code}")


@fault(
    40, "a handler is stopped inside a transaction", "its connection is closed; no idle transaction"
)
async def stopped_in_transaction(stage: Stage) -> None:
    client = await stage.client()
    worker = await stage.worker(client)
    for in_statement in (True, False):
        for _ in range(3):
            await client.dispatch("in_transaction", in_statement=in_statement)
    await client.until_final(60)
    open_ones = (
        "select count(*) from pg_stat_activity where datname = current_database() "
        "and (state like 'idle in transaction%' or query like '%pg_sleep(600)%') "
        "and pid <> pg_backend_pid()"
    )
    await until(lambda: _none(client, open_ones), 15, "no transaction is left open")
    left = await client.value("select count(*) from faultbench_effects")
    stage.require(left == 0, f"{left} effects of stopped attempts were committed")
    after = await client.dispatch("querying")
    await client.until_status(after, "completed")
    await stage.judge(client, allow=("unsuccessful",))
    stage.require(worker.is_alive, "the worker exited")


async def _none(client: Client, count: str) -> bool:
    return bool(await client.value(count) == 0)


@fault(
    51,
    "the worker is PID 1 of a container",
    "isolated jobs, suspects and schedules run as usual",
    timeout=300,
)
async def pid_one(stage: Stage) -> None:
    unshare = shutil.which("unshare")
    if unshare is None or os.geteuid() != 0:
        raise CannotRun("a PID namespace needs unshare and root")
    prefix = (unshare, "--pid", "--fork", "--mount-proc", "--kill-child")
    client = await stage.client()
    gate = stage.gate()
    held = await client.dispatch_many(5, "work", **gate.input)
    for args in ((), ("--processes=2",)):
        container = await stage.worker(client, *args, prefix=prefix, ready=False)
        await client.dispatch_many(4, "work_in_process", seconds=0.2)
        await client.dispatch_many(4, "work_in_thread", seconds=0.2)
        await stage.until_started(*held, timeout=60)
        await until(lambda: _isolated_are_done(client), 60, "isolated jobs complete as PID 1")
        # After the kill, the running jobs are suspects and run alone in the next container.
        container.kill()
    gate.open()
    last = await stage.worker(client, prefix=prefix, ready=False)
    await client.until_final(120)
    last.terminate()
    await stage.judge(client, allow=("overlapping",))
    rows = [await client.job(mark) for mark in held]
    stage.require({row["attempts"] for row in rows} == {1}, "suspects used attempts")


async def _isolated_are_done(client: Client) -> bool:
    waiting = (
        "select count(*) from forge_jobs "
        "where job_type in ('work_in_process', 'work_in_thread') and status <> 'completed'"
    )
    return bool(await client.value(waiting) == 0)


@fault(
    64,
    "an isolated handler forks",
    "timeout, cancel and crash are detected immediately; the whole process group ends",
)
async def forking(stage: Stage) -> None:
    client = await stage.client()
    worker = await stage.worker(client)
    for how in ("timeout", "cancel", "exit"):
        grandchild = stage.folder / f"grandchild-{how}"
        mark = await client.dispatch("forking", how=how, grandchild=str(grandchild))
        (start,) = await stage.until_started(mark)
        await until(grandchild.exists, 15, "the handler has forked")
        if how == "cancel":
            await _cancel(stage, client, mark)
        requested = time.monotonic()
        row = await client.until_status(mark, "dead_letter", "cancelled", "retry", timeout=40)
        stage.recovered(time.monotonic() - requested - (8 if how == "timeout" else 0))
        pid = int(grandchild.read_text())
        await until(functools.partial(_is_gone, pid), 10, f"the grandchild ends ({how})")
        stage.note(f"{how}: {row['status']} after {time.monotonic() - start.monotonic:.1f} s")
        if how == "exit":
            await client.until_status(mark, "dead_letter", timeout=60)
    stage.require(worker.is_alive, "the worker exited")
    await stage.judge(client, allow=("unsuccessful", "overlapping"))


def _is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


@fault(
    59,
    "a Django or SQLAlchemy connection is lost between two jobs",
    "the next job in that thread works",
)
async def lost_between_jobs(stage: Stage) -> None:
    client = await stage.client()
    worker = await stage.worker(client, app="faultbench.apps.drivers:app", max_concurrent=1)
    await client.until_known("sqlalchemy_query")
    for kind in ("django_query", "sqlalchemy_query"):
        first = await client.dispatch(kind)
        await client.until_status(first, "completed", "dead_letter")
        ended = await client.value(
            "select count(pg_terminate_backend(pid)) from pg_stat_activity "
            "where datname = current_database() and application_name = 'handlers'"
        )
        stage.require(ended, f"{kind} left no connection open")
        second = await client.dispatch(kind)
        row = await client.until_status(second, "completed", "dead_letter")
        stage.require(row["status"] == "completed", f"{kind}: {row['last_error']}")
    await stage.judge(client)
    stage.require(worker.is_alive, "the worker exited")
    stopped = [e for e in stage.history.events(Kind.ENDED) if e.detail.get("how") == "raised"]
    stage.note(f"{len(stopped)} attempts failed on the lost connection and were returned")
