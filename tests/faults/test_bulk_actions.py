"""Workers are killed during a bulk action: each job is acted on once, and none is left out."""

import psycopg

from tests.cli.command import Project, project_fixture
from tests.faults.kit.process import wait_until

__all__ = ["project_fixture"]

# Two in three are final and can be run again; the rest wait.
FILL = """insert into forge_jobs (job_type, scheduled_at, tags)
select 'greet', now() + interval '1 hour', array[(n %% 3)::text] from generate_series(1, %s) as n"""
END = "update forge_jobs set status = 'cancelled' where tags <> '{0}'"
JOBS = 3_000
KILLS = 2
CHANGED = "select count(*) from forge_jobs where version > 0 and tags = '{0}'"
# The checkpoint of a bulk action waits for a lock.
HOLD_BACK = """create function hold_back() returns trigger language plpgsql as
$$ begin perform pg_advisory_xact_lock_shared(7); return new; end $$;
create trigger hold_back before update of checkpoint on forge_jobs
for each row when (new.job_type = 'forge.bulk') execute function hold_back()"""
WAITING = "select count(*) from pg_locks where locktype = 'advisory' and not granted"
MADE = "select count(*) from forge_jobs where retry_of is not null"


def test_each_job_is_acted_on_once_when_workers_are_killed(project: Project) -> None:
    project.env |= {"FORGE_WORKER_DEAD_AFTER": "2s", "FORGE_WORKER_HEARTBEAT_INTERVAL": "300ms"}
    project.rows(FILL, JOBS)
    project.rows(END)
    reason = ("--reason", "a test", "--no-wait", "--rate", "1500")
    moved = project.json("jobs", "bulk", "move", "--tag", "0", "--to-queue", "slow", *reason)
    rerun = project.json(
        "jobs", "bulk", "rerun", "--status", "cancelled", "--to-queue", "none", *reason
    )

    for kill in range(1, KILLS + 1):
        with project.worker() as worker:
            wait_until(
                lambda kill=kill: all(
                    project.row(count)[0] >= kill * wanted // (2 * KILLS)
                    for count, wanted in ((CHANGED, JOBS // 3), (MADE, JOBS * 2 // 3))
                ),
                60,
                "some are changed",
            )
            worker.sigkill()
            worker.wait(10)
    with project.worker():
        for request in (moved, rerun):
            project.wait_for_status(request["request_id"], "completed", 120)

    reports = project.rows(
        "select output from forge_jobs where job_type = 'forge.bulk' order by id"
    )
    assert [(row[0]["done"], row[0]["skipped"], row[0]["failed"]) for row in reports] == [
        (JOBS // 3, 0, 0),
        (JOBS * 2 // 3, 0, 0),
    ]
    once = "select version, queue, count(*) from forge_jobs where tags = '{0}' group by 1, 2"
    assert project.rows(once) == [(1, "slow", JOBS // 3)]
    assert project.row(f"{MADE} and queue = 'none'")[0] == JOBS * 2 // 3
    originals = "select count(distinct retry_of) from forge_jobs where retry_of is not null"
    assert project.row(originals)[0] == JOBS * 2 // 3
    assert project.row("select count(*) from forge_audit_events")[0] == 2


def test_a_worker_that_is_frozen_in_a_slice_changes_nothing(project: Project) -> None:
    project.env |= {"FORGE_WORKER_DEAD_AFTER": "2s", "FORGE_WORKER_HEARTBEAT_INTERVAL": "300ms"}
    project.rows(FILL, 100)
    asked = ("--queue", "default", "--to-queue", "slow", "--reason", "a test", "--no-wait")
    request = project.json("jobs", "bulk", "move", *asked)["request_id"]

    project.rows(HOLD_BACK)
    with psycopg.connect(project.url, autocommit=True) as holder:
        holder.execute("select pg_advisory_lock(7)")
        with project.worker() as frozen:
            # The slice has moved its jobs, and is about to write its place.
            wait_until(lambda: project.row(WAITING)[0] > 0, 30, "the slice waits")
            frozen.sigstop()
            holder.execute("select pg_advisory_unlock(7)")
            with project.worker():
                project.wait_for_status(request, "completed", 60)
            frozen.sigcont()

    report = project.row("select output from forge_jobs where id = %s", request)[0]
    assert (report["done"], report["skipped"]) == (100, 0)
    assert project.rows(
        "select version, queue, count(*) from forge_jobs where queue <> 'forge' group by 1, 2"
    ) == [(1, "slow", 100)]
