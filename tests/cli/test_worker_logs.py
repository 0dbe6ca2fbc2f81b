"""Output of child processes appears in the log of their worker."""

import json
from typing import Any
from uuid import uuid4

from tests.cli.command import Project, project_fixture
from tests.faults.kit.process import Child, wait_until

__all__ = ["project_fixture"]


def test_every_line_of_a_worker_with_noisy_children_is_json(project: Project) -> None:
    correlation = str(uuid4())
    project.env["PYTHONUNBUFFERED"] = ""
    with project.worker("--log-format", "json", app="noisy:app") as worker:
        job = project.row(
            "select forge_dispatch('shout', '{}', tenant_id => 7, correlation_id => %s::uuid)",
            correlation,
        )[0]
        project.wait_for_status(str(job), "completed")
        wait_until(lambda: "completed in" in worker.output(), 10, "its end was logged")
        worker.sigterm()
        assert worker.wait(20) == 0
        records = lines(worker)

    printed = {r["message"]: r for r in records if r["logger"] == "forge.child"}
    expected = {
        "to standard output": "stdout",
        "to standard error": "stderr",
        "without an end of line": "stdout",
        "from a program": "stdout",
        "imported by a child": "stdout",
    }
    assert {text: printed[text]["stream"] for text in expected} == expected
    assert any("UserWarning: a warning" in text for text in printed)
    logged = {r["message"]: r for r in records if r["logger"] == "shop"}
    assert logged.keys() == {"tea is on", "low on tea", "it failed"}
    assert logged["low on tea"]["left"] == 3
    assert "ValueError: broken" in logged["it failed"]["exception"]
    for record in (*(printed[text] for text in expected), *logged.values()):
        fields = ("job_id", "job_type", "attempt", "tenant_id", "correlation_id")
        assert [record[name] for name in fields] == [str(job), "shout", 1, 7, correlation]


def test_final_output_of_a_child_carries_its_job_id(project: Project) -> None:
    with project.worker("--log-format", "json", app="noisy:app") as worker:
        job = str(project.row("select forge_dispatch('die_loudly', '{}')")[0])
        wait_until(lambda: "its process died" in worker.output(), 30, "its death was logged")
        records = lines(worker)

    (words,) = [r for r in records if r["message"] == "last words"]
    assert (words["job_id"], words["stream"], words["level"]) == (job, "stderr", "warning")


def test_text_logs_pass_child_output_through(project: Project) -> None:
    with project.worker(app="noisy:app") as worker:
        job = str(project.row("select forge_dispatch('shout', '{}')")[0])
        project.wait_for_status(job, "completed")
        wait_until(lambda: "completed in" in worker.output(), 10, "its end was logged")

        printed = worker.output().splitlines()

    assert "to standard output" in printed
    assert any(f" WARNING low on tea (shout {job}, attempt 1)" in line for line in printed)


def lines(worker: Child) -> list[Any]:
    return [json.loads(line) for line in worker.output().splitlines()]
