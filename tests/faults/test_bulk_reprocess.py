"""A worker is killed during a bulk reprocess: no job is lost or created twice."""

from tests.cli.command import Project, project_fixture
from tests.faults.kit.process import wait_until

__all__ = ["project_fixture"]

FILL = """insert into forge_dead_letters
    (job_id, job_type, queue, priority, payload, payload_version, attempt_count, exception,
     original_created_at, original_scheduled_at)
select forge_uuidv7(), 'greet', 'default', 50, jsonb_build_object('name', n), '1.0', 1,
       'ValueError', now(), now()
from generate_series(1, %s) as n"""
MADE = "select count(*) from forge_jobs where retry_of is not null"
LETTERS = 400
KILLS = 2


def test_no_job_is_lost_or_created_twice_when_workers_are_killed(project: Project) -> None:
    project.rows(FILL, LETTERS)
    requested = project.json("dlq", "reprocess", "--all", "--rate", "50", "--no-wait")

    for kill in range(1, KILLS + 1):
        with project.worker() as worker:
            wait_until(
                lambda kill=kill: project.row(MADE)[0] >= kill * LETTERS // (2 * KILLS),
                60,
                "some are made",
            )
            worker.sigkill()
            worker.wait(10)
    with project.worker():
        project.wait_for_status(requested["request_id"], "completed", 90)
        wait_until(lambda: _is_done(project), 60, "all have run")

    job = project.row("select output from forge_jobs where id = %s", requested["request_id"])
    assert job[0]["reprocessed"] == LETTERS
    assert project.row(MADE)[0] == LETTERS
    assert project.row(f"{MADE} and status = 'completed' and lease >= 1")[0] == LETTERS
    twice = (
        "select retry_of from forge_jobs where retry_of is not null group by 1 having count(*) > 1"
    )
    assert project.rows(twice) == []
    left = "select count(*) from forge_dead_letters where status <> 'reprocessed'"
    assert project.row(left)[0] == 0
    succeeded = "select count(distinct dlq_id) from forge_audit_events where event = %s"
    assert project.row(succeeded, "job_dlq_reprocess_success")[0] == LETTERS


def _is_done(project: Project) -> bool:
    return bool(project.row(f"{MADE} and status <> 'completed'")[0] == 0)
