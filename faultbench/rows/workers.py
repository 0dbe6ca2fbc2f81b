"""Workers that are killed, paused and restarted."""

import asyncio
import time
import uuid
from typing import Any

from faultbench.history import Kind
from faultbench.process import until
from faultbench.registry import fault
from faultbench.stage import Stage

# A dead worker's jobs run again within this time with the default settings.
RECOVERY = 10.0


@fault(
    1,
    "SIGKILL of a worker in the middle of jobs",
    "its jobs run again within 10 s; none is lost",
    runs=3,
)
async def killed_worker(stage: Stage) -> None:
    client = await stage.client()
    doomed = await stage.worker(client)
    heir = await stage.worker(client)
    gate = stage.gate()
    held = await client.dispatch_many(10, "work", **gate.input)
    short = [await client.dispatch("work", seconds=stage.dice.uniform(0, 0.3)) for _ in range(100)]
    await stage.until_started(*held)
    of_doomed = [
        event.mark for event in stage.starts() if event.pid == doomed.pid and event.mark in held
    ]
    stage.require(of_doomed, "the worker to be killed ran nothing")
    # The kill comes at any moment of a heartbeat interval.
    await asyncio.sleep(stage.dice.uniform(0, 2))

    doomed.kill()

    gate.open()
    (killed,) = stage.history.events(Kind.KILLED)
    again = await stage.until_started(*of_doomed, lease=2, timeout=30)
    stage.recovered(max(event.monotonic for event in again) - killed.monotonic, within=RECOVERY)
    stage.require(heir.is_alive, "the other worker ended")
    found = await stage.judge(client)
    stage.require(
        set(found.duplicated) <= {*of_doomed, *short}, "a job of the living worker ran twice"
    )


@fault(
    2,
    "SIGKILL between a handler's end and its completion",
    "the job runs again; one finalisation is accepted",
    runs=2,
)
async def killed_before_completion(stage: Stage) -> None:
    client = await stage.client()
    await stage.worker(client, max_concurrent=6)
    gate = stage.gate()
    neighbours = await client.dispatch_many(3, "work", **gate.input)
    dying = await client.dispatch_many(3, "dying_at_the_end", **gate.input)
    await stage.until_started(*neighbours, *dying)
    heir = await stage.worker(client)

    gate.open()

    await stage.until_ended(*dying)
    found = await stage.judge(client)
    killed = stage.history.events(Kind.KILLED)[0]
    again = [event.monotonic for event in stage.starts() if event.lease > 1]
    stage.require(again, "nothing ran again")
    stage.recovered(max(again) - killed.monotonic)
    stage.require(heir.is_alive, "the other worker ended")
    stage.note(f"{len(found.duplicated)} handlers had ended unheard and ran again")


async def _somebody_waits(stage: Stage) -> bool:
    client = await stage.client()
    waiting = (
        "select count(*) from pg_stat_activity "
        "where datname = current_database() and wait_event_type = 'Lock'"
    )
    return bool(await client.value(waiting))


@fault(
    3,
    "SIGSTOP past the lease, then SIGCONT",
    "every write of the stale attempt is rejected; it learns that it is stale",
    runs=2,
)
async def zombie(stage: Stage) -> None:
    client = await stage.client()
    paused = await stage.worker(client)
    gate = stage.gate()
    plain = await client.dispatch_many(3, "work", **gate.input)
    told = stage.gate("told")
    reporting = await client.dispatch_many(2, "reporting", **told.input)
    effects = await client.dispatch_many(2, "effect", **gate.input)
    held = [*plain, *reporting, *effects]
    await stage.until_started(*held)

    paused.pause()
    heir = await stage.worker(client)
    await stage.until_started(*held, lease=2)
    gate.open(lease=1)
    paused.resume()
    # The stale attempts run to their ends while the new ones are held.
    await until(lambda: _ended(stage, 1) >= len(held), 30, "the stale attempts have ended")
    await stage.until_alive(client, paused, since=stage.history.events(Kind.RESUMED)[0].wall)
    gate.open()
    told.open()

    found = await stage.judge(client, allow=("overlapping",))
    stage.require(heir.is_alive and paused.is_alive, "a worker ended")
    rows = [await client.job(mark) for mark in held]
    stage.require({row["lease"] for row in rows} == {2}, f"completed under other leases: {rows}")
    effect_rows = await client.fetch("select mark, lease from faultbench_effects")
    kept = sorted((row["mark"], row["lease"]) for row in effect_rows)
    stage.require(
        kept == sorted((mark, 2) for mark in effects), f"effects of stale attempts: {kept}"
    )
    stopped = {
        event.mark
        for event in stage.history.events(Kind.ENDED)
        if event.lease == 1 and event.detail.get("how") == "stopped"
    }
    # These never reach their gate: only the engine can end them.
    stage.require(set(reporting) <= stopped, f"stale attempts were not stopped: {stopped}")
    stage.require(
        found.overlap < 30, f"stale attempts ran for {found.overlap:.1f} s beside the new ones"
    )


def _ended(stage: Stage, lease: int) -> int:
    return len({event.mark for event in stage.history.events(Kind.ENDED) if event.lease == lease})


@fault(4, "a rescue races completions", "exactly one of them wins; the row is consistent", runs=2)
async def rescue_races_completion(stage: Stage) -> None:
    client = await stage.client()
    pace: dict[str, Any] = {"heartbeat_interval": "1s", "dead_after": "4s"}
    raced = await stage.worker(client, **pace, max_concurrent=30)
    await stage.worker(client, app="faultbench.older:app", **pace)
    for _ in range(4):
        # Their ends fall around the moment at which the paused worker counts as dead.
        for _ in range(6):
            await client.dispatch("work", seconds=stage.dice.uniform(1, 5))
        await asyncio.sleep(stage.dice.uniform(0.2, 0.5))
        raced.pause()
        await asyncio.sleep(stage.dice.uniform(3.5, 5.5))
        raced.resume()
        await asyncio.sleep(1)
    found = await stage.judge(client, allow=("overlapping",))
    stage.note(f"{len(found.duplicated)} of {found.jobs} were rescued first")


@fault(
    5,
    "a worker restarts under the same id",
    "its old jobs are rescued; the old process is fenced",
    runs=2,
)
async def same_name(stage: Stage) -> None:
    client = await stage.client()
    name = str(uuid.uuid4())
    first = await stage.worker(client, id=name)
    gate = stage.gate()
    marks = await client.dispatch_many(5, "work", **gate.input)
    await stage.until_started(*marks)
    first.pause()

    await stage.worker(client, id=name)
    alive = time.monotonic()
    again = await stage.until_started(*marks, lease=2, timeout=30)
    stage.recovered(max(event.monotonic for event in again) - alive, within=RECOVERY)
    gate.open(lease=1)
    first.resume()
    await until(lambda: _ended(stage, 1) == len(marks), 30, "the old attempts have ended")
    gate.open()

    await stage.judge(client, allow=("overlapping",))
    rows = [await client.job(mark) for mark in marks]
    stage.require({row["lease"] for row in rows} == {2}, "an old attempt completed a job")


@fault(
    6, "the row of a worker is deleted", "its jobs are rescued when it is dead, kept while it lives"
)
async def deleted_row(stage: Stage) -> None:
    client = await stage.client()
    dead = await stage.worker(client, stale_threshold="10s")
    gate, other_gate = stage.gate(), stage.gate("other")
    of_dead = await client.dispatch_many(4, "work", **gate.input)
    await stage.until_started(*of_dead)
    living = await stage.worker(client, stale_threshold="10s")
    of_living = await client.dispatch_many(4, "work", **other_gate.input)
    await stage.until_started(*of_living)

    dead.kill()
    killed = stage.history.events(Kind.KILLED)[0]
    await client.execute("delete from forge_workers")
    again = await stage.until_started(*of_dead, lease=2, timeout=60)
    stage.recovered(max(event.monotonic for event in again) - killed.monotonic)
    gate.open()
    other_gate.open()

    found = await stage.judge(client)
    stage.require(living.is_alive, "the living worker ended")
    lived = [
        event for event in stage.starts() if event.mark in of_living and event.pid == living.pid
    ]
    twice = set(found.duplicated) & {event.mark for event in lived if event.lease == 1}
    stage.require(not twice, f"jobs of the living worker ran twice: {twice}")


@fault(
    7,
    "a rescuer dies in its sweep, or one row cannot be rescued",
    "the others are still rescued",
)
async def wedged_rescue(stage: Stage) -> None:
    client = await stage.client()
    doomed = await stage.worker(client)
    gate = stage.gate()
    marks = await client.dispatch_many(6, "work", **gate.input)
    await stage.until_started(*marks)
    wedged = await client.job(marks[2])
    await client.execute(f"""
        create function wedge() returns trigger language plpgsql as
        $$begin raise exception 'this row stays where it is'; end$$;
        create trigger wedge before update on forge_jobs for each row
        when (new.id = '{wedged["id"]}' and new.status = 'retry') execute function wedge()""")
    rescuer = await stage.worker(client)
    locker = await client.connect()
    lock = locker.transaction()
    await lock.start()
    # The sweep records what it rescues here, so that it waits with its rows locked.
    await locker.execute("lock table forge_attempts in exclusive mode")
    doomed.kill()
    await until(lambda: _somebody_waits(stage), 30, "the sweep waits")
    rescuer.kill()
    await lock.rollback()
    await locker.close()
    died = stage.history.events(Kind.KILLED)[-1]

    await stage.worker(client)
    others = [mark for mark in marks if mark != marks[2]]
    again = await stage.until_started(*others, timeout=60, lease=2)
    stage.recovered(max(event.monotonic for event in again) - died.monotonic)
    row = await client.job(marks[2])
    stage.require(row["status"] == "running", f"the wedged row is {row['status']}")
    await client.execute("drop trigger wedge on forge_jobs")
    gate.open()
    await stage.judge(client)


@fault(
    8,
    "a job kills its process (_exit, SEGV, SIGKILL)",
    "it is dead-lettered; its neighbours complete",
)
async def poison(stage: Stage) -> None:
    client = await stage.client()
    supervisor = await stage.worker(client, "--processes=2", ready=False)
    gate = stage.gate()
    neighbours = await client.dispatch_many(10, "work", **gate.input)
    pills = [
        await client.dispatch("poison", how=how) for how in ("exit", "segmentation fault", "kill")
    ]
    for pill in pills:
        row = await client.until_status(pill, "dead_letter", "failed", "completed", timeout=120)
        stage.require(
            row["status"] == "dead_letter", f"{pill} is {row['status']}: {row['last_error']}"
        )
    gate.open()
    found = await stage.judge(client, allow=("unsuccessful",))
    stage.require(
        set(found.unsuccessful) == set(pills), f"neighbours were buried: {found.unsuccessful}"
    )
    stage.require(supervisor.is_alive, "the supervisor ended")
    buried = {row["mark"] for row in await client.fetch(_LETTERS) if row["mark"]}
    stage.require(buried == set(pills), f"dead letters: {buried}, neighbours {len(neighbours)}")


_LETTERS = (
    "select job.input ->> 'mark' as mark from forge_dead_letters as letter "
    "join forge_jobs as job on job.id = letter.job_id"
)


@fault(
    9,
    "a handler hangs while its worker sends heartbeats",
    "it is stopped at its timeout; the slot is free again",
)
async def hanging(stage: Stage) -> None:
    client = await stage.client()
    worker = await stage.worker(client, max_concurrent=3)
    # The start of a child process counts towards the timeout of its first job.
    await client.dispatch("work_in_process")
    await client.until_final(60)
    kinds = ("hanging", "hanging_in_thread", "hanging_in_process")
    hung = [await client.dispatch(kind) for kind in kinds]
    started = await stage.until_started(*hung)
    for mark, start in zip(hung, started, strict=True):
        row = await client.until_status(mark, "dead_letter", timeout=30)
        took = row["failed_at"].timestamp() - start.wall
        stage.recovered(took - 5, within=RECOVERY)
    after = await client.dispatch_many(3, "work", seconds=0.2)
    await client.until_final(30)
    found = await stage.judge(client, allow=("unsuccessful",))
    stage.require(set(found.unsuccessful) == set(hung), f"also failed: {found.unsuccessful}")
    stage.require(not found.duplicated, f"ran twice: {found.duplicated}")
    stage.require(worker.is_alive and after, "the worker ended")


@fault(
    10,
    "a handler blocks the event loop for 3 × dead_after",
    "its job is not rescued; nothing runs twice",
)
async def blocked_loop(stage: Stage) -> None:
    client = await stage.client()
    pace: dict[str, Any] = {"heartbeat_interval": "1s", "dead_after": "4s"}
    workers = [await stage.worker(client, **pace) for _ in range(2)]
    # A worker judges others after its own heartbeats were steady for a while.
    await asyncio.sleep(6)
    mark = await client.dispatch("blocking", seconds=12)
    (start,) = await stage.until_started(mark)
    found = await stage.judge(client)
    stage.require(not found.duplicated, f"ran twice: {found.duplicated}")
    (blocked,) = [worker for worker in workers if worker.pid == start.pid]
    stage.require("loop" in blocked.log(), "the worker did not warn that its loop was blocked")


@fault(
    11,
    "C code holds the interpreter lock past dead_after",
    "documented: the job runs elsewhere, the late result is rejected",
)
async def held_gil(stage: Stage) -> None:
    client = await stage.client()
    pace: dict[str, Any] = {"heartbeat_interval": "1s", "dead_after": "4s"}
    workers = [await stage.worker(client, **pace) for _ in range(2)]
    mark = await client.dispatch("holding_the_gil", seconds=14)
    found = await stage.judge(client, allow=("overlapping",), timeout=90)
    row = await client.job(mark)
    stage.note(
        f"ran {len(stage.starts(mark))} times, completed under lease {row['lease']}; "
        'docs/why/delivery.md says to run such code with isolation="process"'
    )
    stage.require(
        all(worker.is_alive for worker in workers) and not found.stale,
        "the late result was accepted",
    )
