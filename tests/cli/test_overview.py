"""`forge overview`."""

from tests.cli.command import Project, project_fixture

__all__ = ["project_fixture"]


def test_the_overview_shows_figures_and_findings(project: Project) -> None:
    waiting = project.dispatch("greet", {"name": "Ada"})
    project.forge("pause", "--type", "fail", "--reason", "full")

    shown = project.forge("overview")
    read = project.json("overview")

    assert shown.returncode == 0, shown.stderr
    lines = dict(line.split("  ", 1) for line in shown.stdout.split("\n\n")[0].splitlines())
    assert {name: text.strip() for name, text in lines.items() if name != "oldest ready"} == {
        "jobs": "1 pending",
        "slots": "0 of 0 in use",
        "workers": "none",
        "dead letters": "0 waiting",
        "schedules": "0 failing",
        "pauses": "1",
    }
    assert waiting in lines["oldest ready"]
    assert "problem  unserved_jobs: jobs of type greet wait in queue default" in shown.stdout
    assert "info     paused: type fail is paused by" in shown.stdout
    assert read["jobs"]["pending"] == {"count": 1, "precision": "exact"}
    assert read["findings"][0]["code"] == "unserved_jobs"
