"""`forge worker`: processes, signals and log output."""

import json
import os
import signal
from pathlib import Path
from uuid import uuid4

from tests.cli.command import Project, project_fixture
from tests.faults.kit.process import wait_until

__all__ = ["project_fixture"]


def test_worker_logs_its_startup_and_runs_jobs(project: Project) -> None:
    with project.worker("--queue", "default", "--capability", "gpu") as worker:
        ended = project.forge("dispatch", "greet", '{"name": "Ada"}', "--watch")

        line = next(line for line in worker.output().splitlines() if " runs " in line)
        assert "greet" in line
        assert "queues: default" in line
        assert "capabilities: gpu" in line
        assert ended.returncode == 0, ended.stderr
        assert json.loads(ended.stdout.split("\n", 1)[1]) == {"text": "hello Ada"}


def test_sigterm_lets_running_jobs_finish(project: Project, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with project.worker() as worker:
        job = project.dispatch("wait_at", {"gate": str(gate)})
        project.wait_for_status(job, "running")

        worker.sigterm()
        wait_until(lambda: "finishing" in worker.output(), 10, "it has heard")
        late = project.dispatch("greet", {"name": "late"})
        gate.touch()

        assert worker.wait(20) == 0
        assert project.status(job) == "completed"
        assert project.status(late) == "pending"
        assert project.rows("select id from forge_workers") == []


def test_second_sigterm_releases_running_jobs(project: Project, tmp_path: Path) -> None:
    with project.worker() as worker:
        job = project.dispatch("wait_at", {"gate": str(tmp_path / "never")})
        project.wait_for_status(job, "running")

        worker.sigterm()
        wait_until(lambda: "finishing" in worker.output(), 10, "it has heard")
        worker.sigterm()

        assert worker.wait(20) == 0
        found = project.row("select status, attempts from forge_jobs where id = %s", job)
        assert found == ("pending", 0)


def test_hanging_handlers_do_not_delay_the_exit(project: Project) -> None:
    with project.worker() as worker:
        jobs = [project.dispatch("hang"), project.dispatch("refuse_to_end")]
        for job in jobs:
            project.wait_for_status(job, "running")

        worker.sigterm()
        wait_until(lambda: "finishing" in worker.output(), 10, "it has heard")
        worker.sigterm()

        assert worker.wait(20) == 0
        assert [project.status(job) for job in jobs] == ["pending", "pending"]


def test_every_attempt_is_one_json_record_with_its_fields(project: Project) -> None:
    correlation = str(uuid4())
    with project.worker("--log-format", "json") as worker:
        good = project.dispatch(
            "greet", {"name": "Ada"}, "--tenant-id", "7", "--correlation-id", correlation
        )
        bad = project.dispatch("fail")
        wait_until(lambda: good in worker.output() and bad in worker.output(), 20, "both logged")
        worker.sigterm()
        assert worker.wait(20) == 0

        records = [json.loads(line) for line in worker.output().splitlines()]

    by_job = {record["job_id"]: record for record in records if "job_id" in record}
    assert len([record for record in records if "job_id" in record]) == 2
    assert by_job[good]["outcome"] == by_job[good]["state"] == "completed"
    assert by_job[good]["job_type"] == "greet"
    assert by_job[good]["tenant_id"] == 7
    assert by_job[good]["correlation_id"] == correlation
    assert (by_job[good]["attempt"], by_job[good]["retries"], by_job[good]["error"]) == (1, 0, None)
    assert by_job[good]["duration"] >= 0
    assert (by_job[bad]["outcome"], by_job[bad]["state"]) == ("dead_letter", "failed")
    assert "no luck today" in by_job[bad]["error"]
    assert by_job[bad]["level"] == "error"


def test_log_level_off_is_silent(project: Project) -> None:
    with project.start("worker", "shop:app", "--log-level", "off") as worker:
        project.wait_for_status(project.dispatch("fail"), "dead_letter")
        worker.sigterm()

        assert worker.wait(20) == 0
        assert worker.output() == ""


def test_killed_process_is_restarted(project: Project) -> None:
    with project.start("worker", "shop:app", "--processes", "2") as parent:
        first = living(project, 2)

        os.kill(min(first), signal.SIGKILL)

        wait_until(lambda: len(pids(project) - first) == 1, 30, "a new one has come")
        job = project.dispatch("greet", {"name": "Ada"})
        project.wait_for_status(job, "completed")
        parent.sigterm()
        assert parent.wait(30) == 0
        assert not any(map(is_running, pids(project)))


def test_a_second_sigterm_reaches_every_process(project: Project, tmp_path: Path) -> None:
    with project.start("worker", "shop:app", "--processes", "2", "--max-concurrent", "1") as parent:
        living(project, 2)
        never = {"gate": str(tmp_path / "never")}
        jobs = [project.dispatch("wait_at", never) for _ in range(2)]
        for job in jobs:
            project.wait_for_status(job, "running")

        parent.sigterm()
        wait_until(lambda: parent.output().count("finishing") == 2, 10, "both have heard")
        parent.sigterm()

        assert parent.wait(30) == 0
        assert [project.status(job) for job in jobs] == ["pending", "pending"]


def test_workers_end_when_the_process_that_started_them_is_killed(project: Project) -> None:
    with project.start("worker", "shop:app", "--processes", "2") as parent:
        workers = living(project, 2)

        parent.sigkill()

        wait_until(lambda: not any(map(is_running, workers)), 30, "its workers have ended")


def test_an_app_without_jobs_still_carries_out_requests(project: Project) -> None:
    job = project.dispatch("greet", {"name": "Ada"})
    with project.worker(app="bare:app") as worker:
        assert "no types" in worker.output()

        assert project.forge("jobs", "cancel", job).returncode == 0


def test_one_id_for_several_processes_is_refused(project: Project) -> None:
    project.env["FORGE_WORKER_ID"] = str(uuid4())

    ended = project.forge("worker", "shop:app", "--processes", "2")

    assert ended.returncode == 2
    assert "[worker] id" in ended.stderr
    assert "remove it" in ended.stderr


def test_invalid_option_is_reported_as_its_setting(project: Project) -> None:
    ended = project.forge("worker", "shop:app", "--queue", "")

    assert ended.returncode == 2
    assert ended.stderr.startswith("forge: [worker] queues must be a list of names, such as")


def living(project: Project, count: int) -> set[int]:
    wait_until(lambda: len(pids(project)) == count, 30, f"{count} workers live")
    return pids(project)


def pids(project: Project) -> set[int]:
    return {pid for (pid,) in project.rows("select pid from forge_workers")}


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
