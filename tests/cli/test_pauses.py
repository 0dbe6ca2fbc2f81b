"""`forge pause`, `forge resume` and `forge pauses`, with no worker alive."""

from datetime import datetime, timedelta

from tests.cli.command import Project, project_fixture

__all__ = ["project_fixture"]


def test_pause_resume_and_pauses(project: Project) -> None:
    project.rows("insert into forge_job_types (name) values ('export')")

    first = project.forge("pause", "--type", "exprot", "--queue", "default", "--reason", "broken")
    timed = project.json("pause", "--queue", "default", "--for", "2h", "--reason", "full")
    listed = project.json("pauses")["items"]
    table = project.forge("pauses", "--utc").stdout.splitlines()

    assert first.returncode == 0
    assert first.stdout.startswith("type exprot in queue default is paused until `forge resume ")
    assert "'exprot' is registered: did you mean 'export'?" in first.stderr
    since, end = (datetime.fromisoformat(timed[name]) for name in ("created_at", "until"))
    assert end - since == timedelta(hours=2)
    assert timed.pop("warning") is None
    assert listed[1] == timed
    assert "@" in listed[0]["actor"]
    assert table[0].split() == ["pause", "type", "queue", "until", "since", "by", "reason"]
    assert table[1].startswith(listed[0]["pause_id"])
    assert table[2].split()[-1] == "full"

    later = ("--until", "2135-01-01T00:00:00Z", "--reason", "a long time")
    assert project.json("pause", "--type", "export", *later)["until"] == "2135-01-01T00:00:00+00:00"
    resumed = project.forge("resume", listed[0]["pause_id"])
    project.json("resume", "--type", "export")
    project.json("resume", "--queue", "default", "--reason", "repaired")

    assert resumed.stdout == "type exprot in queue default is resumed\n"
    assert project.forge("pauses").stdout == "nothing is paused\n"
    events = project.rows("select event, actor, notes from forge_audit_events order by id")
    assert [event for event, _, _ in events] == [*["pause_added"] * 3, *["pause_removed"] * 3]
    assert {actor for _, actor, _ in events} == {listed[0]["actor"]}
    assert events[5][2] == "repaired"


def test_a_wrong_pause_says_what_to_write(project: Project) -> None:
    wrong = {
        ("pause", "--reason", "x"): "name at least one of them",
        ("pause", "--type", "export"): "Missing option '--reason'",
        ("pause", "--type", "forge.delete", "--reason", "x"): "cannot be paused",
        ("pause", "--type", "x", "--for", "2", "--reason", "x"): "is not a duration",
        ("resume",): "takes either pause_id",
    }

    for arguments, message in wrong.items():
        ended = project.forge(*arguments)
        assert (ended.returncode, message in ended.stderr) == (2, True), ended.stderr
    missing = project.forge("resume", "--type", "export")
    assert (missing.returncode, "`forge pauses` lists" in missing.stderr) == (1, True)
