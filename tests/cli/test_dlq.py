"""`forge dlq` and `forge audit`."""

import json
import re

from tests.cli.command import Project, project_fixture

__all__ = ["project_fixture"]
# Every version of a row has its own xmin.
STATE = """select id::text, xmin::text from forge_jobs
union all select dlq_id::text, xmin::text from forge_dead_letters order by 1"""


def _bury(project: Project, count: int = 1) -> list[int]:
    for _ in range(count):
        job_id = project.dispatch("fail", {"name": "ann"})
        project.wait_for_status(job_id, "dead_letter")
    return [row[0] for row in project.rows("select dlq_id from forge_dead_letters order by 1")]


def test_dead_letters_are_listed_shown_and_grouped(project: Project) -> None:
    with project.worker():
        first, second = _bury(project, 2)

    listed = project.json("dlq", "list", "--type", "fail", "--limit", "1")
    shown = project.json("dlq", "show", str(first))
    (group,) = project.json("dlq", "groups")
    table = project.forge("dlq", "list")
    lines = project.forge("dlq", "show", str(first))

    assert [item["dlq_id"] for item in listed["items"]] == [second]
    assert (listed["total_count"], listed["next_cursor"]) == (2, second)
    assert shown["payload"] == {"name": "ann"}
    assert shown["attempts"][0]["error"] == "no luck today"
    assert (group["letters"], group["place"]) == (2, "shop:fail")
    assert "no luck today" in table.stdout
    assert "attempt 1: dead_letter" in lines.stdout
    assert re.search(r"from ....-..-.. ..:..:.. \w+ to ....-..-.. ..:..:.. \w+\n", lines.stdout)
    assert "Traceback (most recent call last)" in lines.stdout
    assert "ValueError: no luck today" in lines.stdout
    assert 'shop.py", line' in shown["attempts"][0]["trace"]


def test_one_is_reprocessed_with_another_payload_and_audited(project: Project) -> None:
    with project.worker():
        (dlq_id,) = _bury(project)

        made = project.json(
            "dlq", "reprocess", str(dlq_id), "--notes", "mended", "--payload", '{"name": "bob"}'
        )
        again = project.forge("dlq", "reprocess", str(dlq_id))
        project.wait_for_status(made["new_job_id"], "dead_letter")

    events = project.json("audit", "--dlq", str(dlq_id))["items"]
    assert made["new_idempotency_key"].startswith(f"dlq_{dlq_id}_retry_")
    assert again.returncode == 1
    assert "was reprocessed by" in again.stderr
    assert [event["event"] for event in events][-2:] == [
        "job_dlq_reprocess_success",
        "job_dlq_reprocess_requested",
    ]
    assert events[-1]["notes"] == "mended"
    assert "@" in events[-1]["actor"]
    assert "job_dlq_reprocess_requested" in project.forge("audit").stdout


def test_a_dry_run_of_one_changes_nothing(project: Project) -> None:
    with project.worker():
        (dlq_id,) = _bury(project)
    before = project.rows(STATE)

    planned = project.json("dlq", "reprocess", str(dlq_id), "--dry-run")

    assert (planned["letters"], planned["dlq_id"]) == (1, dlq_id)
    assert project.rows(STATE) == before
    assert project.json("audit")["items"] == []

    project.json("dlq", "discard", str(dlq_id), "--notes", "a duplicate")
    too_late = project.forge("dlq", "reprocess", str(dlq_id), "--dry-run")
    assert too_late.returncode == 1
    assert "was discarded" in too_late.stderr


def test_discard_requires_notes_and_takes_one_or_all_that_match(project: Project) -> None:
    with project.worker():
        _, dlq_id, *_ = _bury(project, 3)
        dry = project.json("dlq", "discard", "--type", "fail", "--dry-run")
        unexplained = project.forge("dlq", "discard", "--all")
        many = project.json("dlq", "discard", "--type", "nothing", "--notes", "x")
        _check_discard_of_one(project, dlq_id)
        rest = project.forge("dlq", "discard", "--type", "fail", "--notes", "duplicates")

    assert dry["letters"] == 3
    assert unexplained.returncode == 2
    assert (many["done"], many["skipped"]) == (0, 0)
    assert rest.stdout.splitlines()[-1] == "discard: 2 dead letters; done"
    assert project.json("dlq", "list", "--status", "pending_review")["items"] == []


def _check_discard_of_one(project: Project, dlq_id: int) -> None:
    without = project.forge("dlq", "discard", str(dlq_id))
    done = project.forge("dlq", "discard", str(dlq_id), "--notes", "a duplicate")

    assert without.returncode == 2
    assert "notes are required to discard a dead letter; explain why" in without.stderr
    assert done.stdout.strip() == f"{dlq_id} discarded"


def test_a_group_is_reprocessed_by_a_worker_after_a_dry_run(project: Project) -> None:
    with project.worker():
        _bury(project, 2)
        (group,) = project.json("dlq", "groups")
        filters = ("--fingerprint", group["fingerprint"])

        dry = project.json("dlq", "reprocess", *filters, "--dry-run")
        ended = project.forge("dlq", "reprocess", *filters, "--priority", "high", "--json")

    report = json.loads(ended.stdout)
    newest = max(project.json("dlq", "list")["items"], key=lambda letter: letter["dlq_id"])
    assert dry["letters"] == 2
    assert project.json("jobs", "show", newest["job_id"])["priority"] == 75
    assert ended.returncode == 1
    assert (report["reprocessed"], report["stopped"]) == (1, "a canary failed again")


def test_bulk_reprocess_requires_a_filter_or_all(project: Project) -> None:
    for wrong in ([], ["5", "--all"], ["--all", "--payload", "{}"], ["5", "--payload", "{"]):
        ended = project.forge("dlq", "reprocess", *wrong)

        assert ended.returncode == 2, ended.stdout
