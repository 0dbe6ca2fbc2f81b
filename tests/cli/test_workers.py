"""`forge workers`: list, show, drain and resume."""

from pathlib import Path
from uuid import uuid4

from tests.cli.command import Project, project_fixture
from tests.faults.kit.process import wait_until

__all__ = ["project_fixture"]


def test_workers_are_listed_shown_drained_and_resumed(project: Project, tmp_path: Path) -> None:
    assert "No workers" in project.forge("workers").stdout
    with project.worker():
        job = project.dispatch("wait_at", {"gate": str(tmp_path / "gate")})
        project.wait_for_status(job, "running")

        (listed,) = project.json("workers")["items"]
        table = project.forge("workers").stdout.splitlines()
        shown = project.forge("workers", "show", listed["id"]).stdout
        drained = project.json("workers", "drain", listed["id"], "--reason", "a new kernel")

        assert listed["state"] == "alive"
        assert [held["id"] for held in listed["current"]] == [job]
        assert table[0].split()[:6] == ["id", "state", "host", "pid", "running", "now"]
        assert "wait_at" in table[1]
        assert job in shown
        assert drained == {"workers": [listed["id"]]}
        assert project.json("workers", "list")["items"][0]["state"] == "drained"
        later = project.dispatch("greet", {"name": "ann"})
        resumed = project.forge("workers", "resume", "--all")
        assert resumed.stdout == f"resumed: {listed['id']}\n"
        assert project.forge("workers", "resume", "--all").stdout == "resumed: no worker\n"
        wait_until(lambda: project.status(later) == "completed", 30, "it claims again")
        (tmp_path / "gate").touch()

    audit = project.json("audit")["items"]
    assert [event["event"] for event in audit] == ["worker_resumed", "worker_drained"]
    assert audit[1]["notes"] == "a new kernel"


def test_a_wrong_worker_says_what_to_write(project: Project) -> None:
    both = project.forge("workers", "drain", str(uuid4()), "--all")
    none = project.forge("workers", "drain")
    unknown = project.forge("workers", "drain", str(uuid4()))

    assert (both.returncode, none.returncode, unknown.returncode) == (2, 2, 1)
    assert "or all of them by --all" in both.stderr + none.stderr
    assert "`forge workers` lists them" in unknown.stderr
