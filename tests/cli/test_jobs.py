"""`forge jobs` and `forge workers`."""

from datetime import UTC, timedelta, timezone
from pathlib import Path
from typing import Any
from uuid import uuid4

from tests.cli.command import Project, project_fixture
from tests.faults.kit.process import wait_until

CORRELATION = "550e8400-e29b-41d4-a716-446655440000"
__all__ = ["project_fixture"]


def test_list_is_newest_first_and_filtered(project: Project) -> None:
    first = project.dispatch("greet", {"name": "Ada"})
    second = project.dispatch("fail", None, "--queue", "mail")

    assert ids(project.json("jobs", "list")) == [second, first]
    assert ids(project.json("jobs", "list", "--type", "greet")) == [first]
    assert ids(project.json("jobs", "list", "--queue", "mail")) == [second]
    assert ids(project.json("jobs", "list", "--status", "completed")) == []
    either = ("--status", "completed", "--status", "pending")
    assert ids(project.json("jobs", "list", *either)) == [second, first]


def test_list_filters_as_http_does_and_shows_children(project: Project) -> None:
    (parent,) = map(str, project.row("insert into forge_jobs (job_type) values ('t') returning id"))
    insert = """insert into forge_jobs (job_type, parent_id, tags, correlation_id, input)
    values ('t', %s, '{vip}', %s, '{"order": {"id": 42}, "name": "Bob"}') returning id"""
    (child,) = map(str, project.row(insert, parent, CORRELATION))

    related = ("--parent", parent, "--correlation-id", CORRELATION, "--tag", "vip")
    content = ("--state", "queued", "--input", "order.id=42", "--q", "bob")
    found = project.json("jobs", "list", *related, *content)
    none = project.json("jobs", "list", "--tenant", "0")
    shown = project.json("jobs", "show", parent)
    refused = project.forge("jobs", "list", "--input", "order.id")

    assert ids(found) == [child]
    assert "input" not in found["items"][0]
    assert ids(none) == []
    assert [job["id"] for job in shown["children"]] == [child]
    assert (refused.returncode, "PATH=VALUE" in refused.stderr) == (2, True)


def test_list_is_paged(project: Project) -> None:
    jobs = [project.dispatch("greet", {"name": "Ada"}) for _ in range(3)]

    page = project.json("jobs", "list", "--limit", "2")
    rest = project.json("jobs", "list", "--limit", "2", "--cursor", page["next_cursor"])

    assert ids(page) + ids(rest) == jobs[::-1]
    assert rest["next_cursor"] is None


def test_table_lines_are_never_wrapped(project: Project) -> None:
    job = project.dispatch("greet", {"name": "Ada"})

    header, line = project.forge("jobs", "list").stdout.splitlines()

    assert header.split()[:3] == ["id", "type", "status"]
    assert line.split()[:3] == [job, "greet", "pending"]
    assert "no jobs found" in project.forge("jobs", "list", "--type", "x").stdout


def test_the_list_shows_the_progress_of_a_running_job_and_not_its_last_error(
    project: Project,
) -> None:
    waiting = project.dispatch("greet", {"name": "Ada"}, "--delay", "1h")
    with project.worker():
        job = project.dispatch("fail_then_wait")
        reported = "select count(*) from forge_jobs where progress_percent = 40"
        wait_until(lambda: project.row(reported)[0] == 1, 30, "it has reported its progress")

        listed = project.forge("jobs", "list").stdout.splitlines()

    (running,) = (line for line in listed if job in line)
    (delayed,) = (line for line in listed if waiting in line)
    assert " 40% " in running
    assert "resizing b.png" in running
    assert "no luck at first" not in running
    assert "%" not in delayed


def test_times_are_shown_in_local_time_with_the_zone_or_in_utc(project: Project) -> None:
    job = project.dispatch("greet", {"name": "Ada"})
    project.env["TZ"] = "JST-9"
    (due,) = project.row("select scheduled_at from forge_jobs")

    here = [project.forge("jobs", *args).stdout for args in (("list",), ("show", job))]
    utc = [project.forge("jobs", *args, "--utc").stdout for args in (("list",), ("show", job))]

    japan = due.astimezone(timezone(timedelta(hours=9)))
    assert all(f"{japan:%Y-%m-%d %H:%M:%S} JST" in printed for printed in here)
    assert all(f"{due.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC" in printed for printed in utc)


def test_a_job_is_shown_with_the_traces_of_its_attempts(project: Project) -> None:
    with project.worker():
        job = project.dispatch("fail")
        project.wait_for_status(job, "dead_letter")

    shown = project.forge("jobs", "show", job)
    record = project.json("jobs", "show", job)

    assert shown.returncode == 0
    assert "Traceback (most recent call last)" in shown.stdout
    assert "ValueError: no luck today" in shown.stdout
    assert (record["status"], record["state"]) == ("dead_letter", "failed")
    assert [attempt["outcome"] for attempt in record["failed_attempts"]] == ["dead_letter"]


def test_a_cancelled_job_has_the_time_of_its_cancellation_and_did_not_fail(
    project: Project, tmp_path: Path
) -> None:
    with project.worker():
        running = project.dispatch("wait_at", {"gate": str(tmp_path / "never")})
        project.wait_for_status(running, "running")
        waiting = project.dispatch("greet", {"name": "Ada"}, "--delay", "1h")
        ended = [project.forge("jobs", "cancel", job) for job in (running, waiting)]
        shown = [project.json("jobs", "show", job) for job in (running, waiting)]

    assert [command.returncode for command in ended] == [0, 0]
    assert [job["status"] for job in shown] == ["cancelled", "cancelled"]
    assert [job["failed_at"] for job in shown] == [None, None]
    assert all(job["cancelled_at"] >= job["created_at"] for job in shown)


def test_a_running_job_is_cancelled_and_an_ended_one_erased(
    project: Project, tmp_path: Path
) -> None:
    with project.worker():
        job = project.dispatch("wait_at", {"gate": str(tmp_path / "never")})
        project.wait_for_status(job, "running")

        refused = project.forge("jobs", "delete", job)
        cancelled = project.forge("jobs", "cancel", job, "--reason", "not needed")
        status = project.status(job)
        again = project.forge("jobs", "cancel", job)
        deleted = project.json("jobs", "delete", job)

    assert refused.returncode == 1
    assert "cancel it first" in refused.stderr
    assert (cancelled.returncode, status) == (0, "cancelled")
    assert again.returncode == 1
    assert "it is final" in again.stderr
    assert deleted["done"] == "erased"
    audit = project.rows(
        "select event, notes, actor like '%@%' from forge_audit_events order by id"
    )
    assert audit == [("job_cancelled", "not needed", True), ("job_deleted", None, True)]


def test_a_job_for_later_runs_now(project: Project) -> None:
    with project.worker():
        job = project.dispatch("greet", {"name": "Ada"}, "--delay", "1h")

        ended = project.forge("jobs", "run-now", job)

        assert ended.returncode == 0, ended.stderr
        project.wait_for_status(job, "completed")


def test_a_waiting_job_is_rescheduled_reprioritised_and_moved(project: Project) -> None:
    job = project.dispatch("greet", {"name": "Ada"}, "--delay", "1h")
    with project.worker():
        moved = project.forge("jobs", "move", job, "bulk", "--reason", "too many")
        lowered = project.json("jobs", "reprioritise", job, "low")
        at = "2135-01-01T00:00:00Z"
        rescheduled = project.forge("jobs", "reschedule", job, "--scheduled-at", at)
        both = project.forge("jobs", "reschedule", job, "--scheduled-at", at, "--delay", "1h")
        unknown = project.forge("jobs", "reprioritise", job, "urgent")

    assert moved.stdout == f"{job} moved\n", moved.stderr
    assert lowered["done"] == "reprioritised"
    assert rescheduled.stdout == f"{job} rescheduled\n", rescheduled.stderr
    shown = project.json("jobs", "show", job)
    assert (shown["queue"], shown["priority"], shown["scheduled_at"][:4]) == ("bulk", 25, "2135")
    assert "give either --scheduled-at or --delay" in both.stderr
    assert "priority must be one of" in unknown.stderr
    assert (both.returncode, unknown.returncode) == (2, 2)


def test_request_without_a_live_worker_stays_pending(project: Project) -> None:
    job = project.dispatch("greet", {"name": "Ada"}, "--delay", "1h")

    ended = project.forge("jobs", "cancel", job)

    assert ended.returncode == 1
    assert "no worker is alive" in ended.stderr
    with project.worker():
        project.wait_for_status(job, "cancelled")


def test_no_wait_returns_at_once(project: Project) -> None:
    job = project.dispatch("greet", {"name": "Ada"})

    asked = project.json("jobs", "cancel", job, "--no-wait")

    assert project.status(asked["request_id"]) == "pending"
    assert project.status(job) == "pending"


def test_missing_job_is_reported(project: Project) -> None:
    for command in ("show", "cancel", "delete", "run-now"):
        ended = project.forge("jobs", command, str(uuid4()))

        assert ended.returncode == 1
        assert "there is no job" in ended.stderr
    assert project.forge("jobs", "show", "seven").returncode == 2


def test_workers_are_listed_alive_and_dead(project: Project) -> None:
    project.env["FORGE_WORKER_HEARTBEAT_INTERVAL"] = "100ms"
    project.env["FORGE_WORKER_DEAD_AFTER"] = "1s"
    assert "No workers" in project.forge("workers").stdout
    with project.worker("--capability", "gpu") as worker:
        (alive,) = project.json("workers")["items"]

        worker.sigkill()

        wait_until(lambda: states(project) == ["dead"], 20, "it is missed")
    assert (alive["state"], alive["capabilities"]) == ("alive", ["gpu"])
    assert "dead" in project.forge("workers").stdout


def ids(page: dict[str, Any]) -> list[str]:
    return [item["id"] for item in page["items"]]


def states(project: Project) -> list[str]:
    return [worker["state"] for worker in project.json("workers")["items"]]


def test_a_final_job_runs_again_with_a_patched_input(project: Project) -> None:
    with project.worker():
        old = project.dispatch("greet", {"name": "Ada"})
        project.wait_for_status(old, "completed")

        made = project.json("jobs", "rerun", old, "--patch", '{"name": "Bob"}', "--reason", "typo")
        refused = project.forge("jobs", "rerun", old, "--patch", '{"name": "[redacted]"}')
        project.wait_for_status(made["job_id"], "completed")

    why = project.json("jobs", "why", made["job_id"])
    shown = project.json("jobs", "show", made["job_id"])
    assert (made["retry_of"], shown["input"]) == (old, {"name": "Bob"})
    assert shown["timeline"][0]["kind"] == "dispatched"
    assert (why["reason"], refused.returncode) == ("final", 2)
    assert "$.name is a redacted value" in refused.stderr
    event = project.row("select event, notes, actor from forge_audit_events")
    assert event[:2] == ("job_rerun", "typo")
    assert event[2]
