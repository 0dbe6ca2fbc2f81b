"""An upgrade from the previous version under load: its workers run while the schema changes."""

import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from forge.store.migrate import all_migrations
from tests.cli.command import Project
from tests.faults.kit.process import wait_until
from tests.upgrades.conftest import WHEEL

FOLDER = Path(__file__).parent
VERSION = WHEEL.name.split("-")[1]
# Seconds between two dispatches, and at most between two completed jobs.
PACE = 0.01
LONGEST_WAIT = 15
ENOUGH = 30
LONGEST_GAP = """
    with ended as (
        select completed_at, completed_at - lag(completed_at) over (order by completed_at) as gap
        from forge_jobs
        where job_type = 'work' and completed_at > %s
    )
    select extract(epoch from max(gap))::float8 from ended
"""
COMPLETED = "select count(*) from forge_jobs where job_type = 'work' and status = 'completed'"
UNUSUAL = """
    select count(*) from forge_jobs as job
    where job_type = 'work'
      and (crashes > 0 or attempts <> 1 + (input->>'fails')::boolean::integer
           or attempts <> (select count(*) from runs where runs.job_id = job.id))
"""
# A migration that changes one of these waits for the transactions that read it.
LOCKS = re.compile(r"^alter table forge_(workers|schedules|jobs)\b", re.MULTILINE)
FAULT = re.compile(r" (ERROR|CRITICAL) |cached plan|does not exist")


class Load:
    """Dispatches jobs at a steady pace, from SQL as any version does, until it is closed."""

    def __init__(self, url: str) -> None:
        self.dispatched = 0
        self._url = url
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        self._thread.join(60)

    def _run(self) -> None:
        with psycopg.connect(self._url, autocommit=True) as conn:
            while not self._stop.wait(PACE):
                fails = "true" if self.dispatched % 10 == 0 else "false"
                conn.execute(
                    "select forge_dispatch('work', jsonb_build_object('fails', %s::boolean))",
                    (fails,),
                )
                self.dispatched += 1


@pytest.fixture
def load(empty_url: str, old: Project) -> Iterator[Load]:
    found = Load(empty_url)
    yield found
    found.close()


@pytest.fixture
def old(empty_url: str, previous: Path) -> Project:
    """The previous version, with its schema."""
    project = Project(empty_url, FOLDER)
    project.env["PYTHONPATH"] = str(previous)
    ended = project.forge("migrate", "--app", "shop:app")
    assert ended.returncode == 0, ended.stderr
    project.rows("create table runs (job_id uuid, pid integer)")
    project.rows("create table ticks (pid integer)")
    return project


def test_no_job_is_lost_or_delayed_while_workers_of_the_previous_version_run(
    old: Project, load: Load, empty_url: str
) -> None:
    new = Project(empty_url, FOLDER)
    applied = one(old, "select max(version) from forge_migrations")
    steps = [step for step in all_migrations() if step.version > applied]

    with old.worker() as worker, psycopg.connect(empty_url) as reader:
        old.rows("select forge_dispatch('start_ticks', '{}')")
        wait_until(lambda: completed(old) > ENOUGH and ticks(old) > 0, 60, "old workers run jobs")
        assert one(old, "select version from forge_workers") == VERSION
        began = one(old, "select now()")
        # Like a report that was left open: it holds up each migration that changes these.
        reader.execute("select from forge_workers, forge_schedules, forge_jobs limit 1")

        with new.start("migrate", "--app", "shop:app") as migrating:
            if any(LOCKS.search(step.sql) for step in steps):
                wait_until(lambda: "waiting for a lock" in migrating.output(), 60, "it waits")
                old_workers_continue(old, load)
                assert migrating.is_alive, migrating.output()
            reader.rollback()
            assert migrating.wait(60) == 0, migrating.output()
            printed = migrating.output().splitlines()
            assert [line for line in printed if line.startswith("applied")] == [
                f"applied {step}" for step in steps
            ]

        ticked = ticks(old)
        old_workers_continue(old, load)
        wait_until(lambda: ticks(old) > ticked, 60, "schedules run")

        with new.worker() as successor:
            worker.sigterm()
            assert worker.wait(60) == 0, worker.output()
            jobs_run(old, load)
            load.close()
            wait_until(lambda: completed(old) == load.dispatched, 60, "all jobs are completed")
            logged = (worker.output() + successor.output()).splitlines()

    gap = one(old, LONGEST_GAP, began)
    print(f"the longest time without a completed job: {gap:.2f} s")
    # Far above what it is, since a busy machine delays jobs, too. Fault runs measure it.
    assert gap < LONGEST_WAIT
    assert [line for line in logged if FAULT.search(line)] == []
    # No attempt was lost or repeated: some jobs fail once, on purpose.
    assert one(old, UNUSUAL) == 0
    assert one(old, "select count(*) from forge_dead_letters") == 0


def old_workers_continue(old: Project, load: Load) -> None:
    beat = last_heartbeat(old)
    jobs_run(old, load)
    wait_until(lambda: last_heartbeat(old) > beat, 60, "heartbeats are written")


def jobs_run(old: Project, load: Load) -> None:
    """Wait until jobs are completed that are not dispatched yet."""
    before = load.dispatched
    wait_until(lambda: completed(old) > before + ENOUGH, 60, "jobs are dispatched and completed")


def completed(project: Project) -> int:
    return int(one(project, COMPLETED))


def ticks(project: Project) -> int:
    return int(one(project, "select count(*) from ticks"))


def last_heartbeat(project: Project) -> Any:
    return one(project, "select max(last_heartbeat) from forge_workers")


def one(project: Project, statement: str, *values: Any) -> Any:
    return project.row(statement, *values)[0]
