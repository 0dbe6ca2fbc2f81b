"""`forge jobs bulk`: dry run, progress, report, refusals."""

from tests.cli.command import Project, project_fixture

__all__ = ["project_fixture"]

ADD = """insert into forge_jobs (job_type, queue, scheduled_at, input)
select 'later', 'mail', now() + interval '1 hour', jsonb_build_object('order', n)
from generate_series(1, %s) as n"""


def test_a_bulk_action_shows_what_it_would_do_and_then_its_progress(project: Project) -> None:
    project.rows(ADD, 30)
    filters = ("--queue", "mail", "--status", "pending")

    plan = project.json("jobs", "bulk", "cancel", *filters, "--dry-run")
    shown = project.forge("jobs", "bulk", "cancel", *filters, "--dry-run").stdout.splitlines()
    search = ("--input", "order=7", "--q", "order", "--dry-run")
    assert project.json("jobs", "bulk", "cancel", *search)["count"] == 1
    with project.worker():
        done = project.forge("jobs", "bulk", "cancel", *filters, "--reason", "a test")
        again = project.json("jobs", "bulk", "rerun", "--all", "--reason", "x", "--to-queue", "b")

    assert (plan["count"], plan["precision"], len(plan["sample"])) == (30, "exact", 10)
    assert "input" not in plan["sample"][0]
    assert (shown[0], len(shown)) == ("cancel: 30 jobs match", 12)
    assert (done.returncode, done.stdout) == (0, "cancel: 30 jobs; done\n")
    assert "30 of 30 cancelled" in done.stderr
    assert (again["action"], again["done"], again["stopped"]) == ("rerun", 30, None)
    rows = project.rows("select event, notes from forge_audit_events order by id")
    assert rows == [("job_bulk_requested", "a test"), ("job_bulk_requested", "x")]


def test_what_is_missing_is_named(project: Project) -> None:
    for arguments, expected in (
        (("cancel", "--all"), "--reason is required"),
        (("cancel", "--reason", "x"), "one of filter, ids and all"),
        (("cancel", "--all", "--type", "a", "--reason", "x"), "one of filter, ids and all"),
        (("move", "--all", "--reason", "x"), "move needs the queue"),
        (("cancel", "--all", "--reason", "x", "--rate", "0"), "'--rate': 0.0 is not in the range"),
        (("stop", "--all", "--reason", "x"), "'stop' is not one of 'cancel', 'run-now'"),
    ):
        refused = project.forge("jobs", "bulk", *arguments)
        assert (refused.returncode, expected in refused.stderr) == (2, True), refused.stderr
    waits = project.forge("jobs", "bulk", "cancel", "--all", "--reason", "x")
    assert (waits.returncode, "no worker is alive" in waits.stderr) == (1, True)
