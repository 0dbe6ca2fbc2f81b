"""Workers that are killed, and rescues that fail."""

import asyncio

from faultbench.history import Kind
from faultbench.outcome import RECOVERY
from faultbench.process import until
from faultbench.registry import fault
from faultbench.stage import Stage


@fault(
    1,
    "SIGKILL of a worker in the middle of jobs",
    "its jobs run again within 10 s; none is lost",
    runs=3,
)
async def killed_worker(stage: Stage) -> None:
    client = await stage.client()
    doomed = await stage.worker(client)
    successor = await stage.worker(client)
    gate = stage.gate()
    held = await client.dispatch_many(10, "work", **gate.input)
    short = [await client.dispatch("work", seconds=stage.rng.uniform(0, 0.3)) for _ in range(100)]
    await stage.until_started(*held)
    of_doomed = [
        event.mark for event in stage.starts() if event.pid == doomed.pid and event.mark in held
    ]
    stage.require(of_doomed, "the worker to be killed ran nothing")
    # Kill at a random time within a heartbeat interval.
    await asyncio.sleep(stage.rng.uniform(0, 2))

    doomed.kill()

    gate.open()
    (killed,) = stage.history.events(Kind.KILLED)
    again = await stage.until_started(*of_doomed, lease=2, timeout=30)
    stage.recovered(max(event.monotonic for event in again) - killed.monotonic, within=RECOVERY)
    stage.require(successor.is_alive, "the other worker exited")
    found = await stage.judge(client)
    stage.require(
        set(found.duplicated) <= {*of_doomed, *short}, "a job of the live worker ran twice"
    )


@fault(
    2,
    "SIGKILL between a handler's end and its completion",
    "the job runs again; one completion is accepted",
    runs=2,
)
async def killed_before_completion(stage: Stage) -> None:
    client = await stage.client()
    await stage.worker(client, max_concurrent=6)
    gate = stage.gate()
    neighbours = await client.dispatch_many(3, "work", **gate.input)
    dying = await client.dispatch_many(3, "dying_at_the_end", **gate.input)
    await stage.until_started(*neighbours, *dying)
    successor = await stage.worker(client)

    gate.open()

    await stage.until_ended(*dying)
    found = await stage.judge(client)
    killed = stage.history.events(Kind.KILLED)[0]
    again = [event.monotonic for event in stage.starts() if event.lease > 1]
    stage.require(again, "nothing ran again")
    stage.recovered(max(again) - killed.monotonic)
    stage.require(successor.is_alive, "the other worker exited")
    stage.note(f"{len(found.duplicated)} handlers ended without an ack and ran again")


@fault(
    6,
    "the row of a worker is deleted",
    "its jobs are rescued when it is dead, kept while it is alive",
)
async def deleted_row(stage: Stage) -> None:
    client = await stage.client()
    dead = await stage.worker(client, stale_threshold="10s")
    gate, other_gate = stage.gate(), stage.gate("other")
    of_dead = await client.dispatch_many(4, "work", **gate.input)
    await stage.until_started(*of_dead)
    live = await stage.worker(client, stale_threshold="10s")
    of_live = await client.dispatch_many(4, "work", **other_gate.input)
    await stage.until_started(*of_live)

    dead.kill()
    killed = stage.history.events(Kind.KILLED)[0]
    await client.execute("delete from forge_workers")
    again = await stage.until_started(*of_dead, lease=2, timeout=60)
    stage.recovered(max(event.monotonic for event in again) - killed.monotonic)
    gate.open()
    other_gate.open()

    found = await stage.judge(client)
    stage.require(live.is_alive, "the live worker exited")
    lived = [event for event in stage.starts() if event.mark in of_live and event.pid == live.pid]
    twice = set(found.duplicated) & {event.mark for event in lived if event.lease == 1}
    stage.require(not twice, f"jobs of the live worker ran twice: {twice}")


@fault(
    7,
    "a rescuer dies during a rescue, or one row cannot be rescued",
    "the other jobs are still rescued",
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
        $$begin raise exception 'this row cannot be rescued'; end$$;
        create trigger wedge before update on forge_jobs for each row
        when (new.id = '{wedged["id"]}' and new.status = 'retry') execute function wedge()""")
    rescuer = await stage.worker(client)
    locker = await client.connect()
    lock = locker.transaction()
    await lock.start()
    # The rescue writes to this table, so it waits while it holds its row locks.
    await locker.execute("lock table forge_attempts in exclusive mode")
    doomed.kill()
    await until(lambda: _is_waiting_for_lock(stage), 30, "the rescue waits")
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


async def _is_waiting_for_lock(stage: Stage) -> bool:
    client = await stage.client()
    waiting = (
        "select count(*) from pg_stat_activity "
        "where datname = current_database() and wait_event_type = 'Lock'"
    )
    return bool(await client.value(waiting))
