"""`forge schedules`: list, show, enable, disable and run."""

from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any
from uuid import uuid4

from tests.cli.command import Project, project_fixture
from tests.faults.kit.process import wait_until

__all__ = ["project_fixture"]

MAKE = """
    insert into forge_schedules (type, key, every, next_run_at, tenant_id, payload)
    values (%s, %s, '1 hour', %s, %s, %s) returning id
"""
LATER = datetime.fromisoformat("2135-01-01T00:00:00+00:00")


def make(project: Project, key: str = "42", tenant: int | None = None, **payload: Any) -> str:
    text = '{"fail": true}' if payload else "{}"
    return str(project.row(MAKE, "fetch_feed", key, LATER, tenant, text)[0])


def test_list_describes_schedules_in_words(project: Project) -> None:
    first = make(project)
    make(project, "43", tenant=7)
    project.rows("update forge_schedules set enabled = false where key = '43'")

    listed = project.json("schedules", "list")["items"]
    table = project.forge("schedules", "list").stdout.splitlines()

    assert [row["key"] for row in listed] == ["43", "42"]
    assert listed[1]["id"] == first
    assert listed[1]["when"] == "every hour"
    assert listed[1]["every"] == "1h"
    assert [row["has_worker"] for row in listed] == [False, False]
    assert table[0].split()[:4] == ["type", "key", "tenant", "state"]
    assert table[1].split()[:4] == ["fetch_feed", "43", "7", "disabled"]
    assert "no worker" in table[2]
    assert table[2].endswith("every hour")
    assert len(project.json("schedules", "list", "--disabled")["items"]) == 1
    assert len(project.json("schedules", "list", "--tenant", "7")["items"]) == 1
    assert "no schedules found" in project.forge("schedules", "list", "--type", "x").stdout


def test_list_is_paged(project: Project) -> None:
    made = [make(project, str(n)) for n in range(3)]

    page = project.json("schedules", "list", "--limit", "2")
    rest = project.json("schedules", "list", "--limit", "2", "--cursor", page["next_cursor"])

    assert {row["id"] for row in page["items"] + rest["items"]} == set(made)
    assert rest["next_cursor"] is None


def test_show_includes_the_next_five_runs(project: Project) -> None:
    made = make(project)

    by_id = project.json("schedules", "show", made)
    by_name = project.json("schedules", "show", "fetch_feed", "42")
    shown = project.forge("schedules", "show", "fetch_feed", "42").stdout

    assert by_id == by_name
    runs = [datetime.fromisoformat(moment) for moment in by_id["next_runs"]]
    assert runs[0] == LATER
    assert [later - earlier for earlier, later in pairwise(runs)] == [timedelta(hours=1)] * 4
    assert "when" in shown
    assert "2135-01-01 04:00:00" in shown


def test_missing_schedule_is_reported(project: Project) -> None:
    by_name = project.forge("schedules", "show", "fetch_feed", "42", "--tenant", "7")
    by_id = project.forge("schedules", "enable", str(uuid4()))

    assert (by_name.returncode, by_id.returncode) == (1, 1)
    assert "there is no schedule fetch_feed 42 of tenant 7" in by_name.stderr
    assert "`forge schedules list`" in by_id.stderr


def test_schedule_is_disabled_enabled_and_run(project: Project) -> None:
    made = make(project)

    disabled = project.forge("schedules", "disable", "fetch_feed", "42")
    refused = project.forge("schedules", "run", made)
    enabled = project.json("schedules", "enable", made)
    run = project.json("schedules", "run", "fetch_feed", "42")

    assert disabled.stdout == "fetch_feed 42 disabled, no next run\n"
    assert refused.returncode == 2
    assert "enable it first" in refused.stderr
    assert enabled["enabled"]
    assert datetime.fromisoformat(run["next_run_at"]) < LATER


def test_schedule_is_previewed_and_edited(project: Project) -> None:
    make(project)
    change = ("fetch_feed", "42", "--cron", "0 5 * * *", "--tz", "Europe/Paris", "--jitter", "none")

    shown = project.forge("schedules", "preview", *change, "--count", "2", "--utc").stdout
    before = project.row("select cron from forge_schedules")
    edited = project.forge("schedules", "edit", *change, "--reason", "too early", "--utc")
    nothing = project.forge("schedules", "edit", "fetch_feed", "42")
    unknown = project.forge("schedules", "edit", "fetch_feed", "42", "--cron", "at three")

    words = "runs at 05:00 every day, Europe/Paris time"
    assert shown.startswith(f"would change every, cron, tz, next_run_at; it {words}")
    assert len(shown.splitlines()) == 5
    assert before == (None,)
    assert edited.stdout.startswith(f"fetch_feed 42 {words}"), edited.stderr
    assert edited.stdout.splitlines()[2:5] == shown.splitlines()[2:5]
    assert "nothing to change" in nothing.stderr
    assert "is not a cron expression" in unknown.stderr
    assert (nothing.returncode, unknown.returncode) == (2, 2)
    rows = project.rows("select event, notes, actor like '%@%' from forge_audit_events")
    assert rows == [("schedule_edited", "too early", True)]


def test_changes_are_audited(project: Project) -> None:
    made = make(project)

    for verb in ("disable", "disable", "enable", "enable", "run"):
        moved = project.forge("schedules", verb, "fetch_feed", "42", "--reason", f"to {verb}")
        assert moved.returncode == 0

    rows = project.rows(
        "select event, actor, schedule_id::text, notes from forge_audit_events order by id"
    )
    assert [row[0] for row in rows] == [
        "schedule_disabled",
        "schedule_enabled",
        "schedule_run_requested",
    ]
    assert all("@" in row[1] and row[2] == made for row in rows)
    assert [row[3] for row in rows] == ["to disable", "to enable", "to run"]
    assert project.forge("audit").stdout.count(made) == 3


def test_completed_and_failed_runs_are_shown(project: Project) -> None:
    make(project, fail=True)
    with project.worker(app="clockwork:app"):
        project.json("schedules", "run", "fetch_feed", "42")
        wait_until(
            lambda: project.row(
                "select consecutive_failures from forge_schedules where key = '42'"
            )[0],
            30,
            "it has failed",
        )
        shown = project.forge("schedules", "show", "fetch_feed", "42").stdout
        nightly = project.json("schedules", "show", "nightly")
        listed = project.forge("schedules", "list").stdout

    assert "failed: ValueError: no luck today" in shown
    assert nightly["when"] == "at 03:00 every day, Europe/Paris time"
    assert nightly["has_worker"]
    assert len(nightly["next_runs"]) == 5
    assert "waiting" in listed


def test_doctor_names_unserved_schedules(project: Project) -> None:
    make(project)
    project.rows("update forge_schedules set worker_capability = 'gpu' where key = '42'")
    with project.worker(app="clockwork:app") as worker:
        with_worker = project.forge("doctor").stdout
        worker.sigterm()
        worker.wait(30)
    without = project.forge("doctor").stdout

    assert "no live worker runs 1 of type fetch_feed for capability gpu" in with_worker
    assert "nightly" not in with_worker
    assert "1 of type nightly" in without


def test_worker_logs_the_schedules_it_runs(project: Project) -> None:
    with project.worker(app="clockwork:app") as worker:
        listed = project.forge("workers").stdout

        assert " runs fetch_feed, nightly; " in worker.output()
        assert "fetch_feed, nightly" in listed
