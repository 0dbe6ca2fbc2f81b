"""`forge stats`."""

from tests.cli.command import Project, project_fixture
from tests.faults.kit.process import wait_until

__all__ = ["project_fixture"]
COUNTED = "select coalesce(sum(completed + failed), 0) from forge_statistics where queue <> 'forge'"


def test_statistics_are_shown_over_time_and_by_type(project: Project) -> None:
    assert "no jobs ended" in project.forge("stats").stdout
    with project.worker() as worker:
        for job in (project.dispatch("greet", {"name": "Ada"}), project.dispatch("fail")):
            wait_until(lambda job=job: project.status(job) in ENDED, 30, "it has ended")
        worker.sigterm()
        assert worker.wait(30) == 0  # what is not written is written at its end
    assert project.row(COUNTED) == (2,)

    shown = project.forge("stats", "--last", "15m", "--utc").stdout.splitlines()
    read = project.json("stats", "--last", "15m", "--type", "greet")

    assert shown[0].startswith("from ")
    assert shown[0].endswith("in steps of 1m")
    jobs, waits, failed = shown[2:5]
    assert jobs.split()[:3] == ["jobs", "0.13", "/min"]
    assert "█" in jobs
    assert waits.startswith("wait p95  up to ")
    assert failed.split()[:3] == ["failed", "50", "%"]
    rows = [line.split() for line in shown[7:]]
    assert {row[0] for row in rows} == {"greet", "fail"}
    assert len(read["series"]) == 16
    assert sum(point["completed"] for point in read["series"]) == 1
    assert [item["job_type"] for item in read["types"]] == ["greet"]


def test_a_range_that_cannot_be_read_is_refused(project: Project) -> None:
    ended = project.forge("stats", "--last", "soon")

    assert ended.returncode == 2
    assert "not a duration" in ended.stderr


ENDED = ("completed", "dead_letter")
