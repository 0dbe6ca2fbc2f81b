"""The log record of an attempt whose worker was killed: the rescuing worker writes it."""

import json
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.cli.command import Project, project_fixture
from tests.faults.kit.process import wait_until
from tests.telemetry.test_logs import FIELDS

__all__ = ["project_fixture"]


@pytest.fixture(autouse=True)
def _soon_dead(project: Project) -> None:
    project.env |= {
        "FORGE_WORKER_HEARTBEAT_INTERVAL": "200ms",
        "FORGE_WORKER_DEAD_AFTER": "2s",
        "FORGE_WORKER_METRICS_PORT": "off",
    }


def test_the_attempt_of_a_killed_worker_is_logged_by_the_one_that_rescues_it(
    project: Project, tmp_path: Path
) -> None:
    correlation, gate = str(uuid4()), tmp_path / "gate"
    with project.worker() as killed:
        (job_id,) = project.row(
            "select forge_dispatch('wait_at', %s, tenant_id => 7, correlation_id => %s)::text",
            json.dumps({"gate": str(gate)}),
            correlation,
        )
        project.wait_for_status(job_id, "running")
        killed.sigkill()

    gate.touch()
    with project.worker("--log-format", "json") as rescuer:
        project.wait_for_status(job_id, "completed")
        wait_until(lambda: len(records(rescuer.output(), job_id)) == 2, 20, "both are logged")
        lost, completed = records(rescuer.output(), job_id)

    assert lost.keys() >= FIELDS
    assert (lost["outcome"], lost["state"], lost["level"]) == (
        "lost",
        "failed_retryable",
        "warning",
    )
    assert (lost["job_type"], lost["attempt"], lost["retries"]) == ("wait_at", 1, 0)
    assert (lost["crashes"], completed["crashes"]) == (0, 1)
    assert (lost["tenant_id"], lost["correlation_id"]) == (7, correlation)
    assert lost["error"] == "the worker died while it ran this job"
    assert lost["duration"] >= 1.5
    assert (completed["outcome"], completed["attempt"]) == ("completed", 1)


def test_the_record_of_a_cancelled_attempt_has_the_state_of_its_job(
    project: Project, tmp_path: Path
) -> None:
    with project.worker("--log-format", "json") as worker:
        job_id = project.dispatch("wait_at", {"gate": str(tmp_path / "never")})
        project.wait_for_status(job_id, "running")
        project.forge("jobs", "cancel", job_id)
        wait_until(lambda: len(records(worker.output(), job_id)) == 1, 20, "it is logged")
        (stopped,) = records(worker.output(), job_id)

    assert stopped.keys() >= FIELDS
    assert (stopped["outcome"], stopped["state"]) == ("stopped", "cancelled")
    assert stopped["error"] == "its job was cancelled"
    assert stopped["retries"] == 0
    assert stopped["duration"] > 0


def test_the_record_of_an_attempt_that_lost_its_job_has_the_state_of_that_job(
    project: Project, tmp_path: Path
) -> None:
    with project.worker("--log-format", "json") as worker:
        job_id = project.dispatch("wait_at", {"gate": str(tmp_path / "never")})
        project.wait_for_status(job_id, "running")
        project.rows(
            "update forge_jobs set status = 'retry', scheduled_at = now() + interval '1 h'"
        )
        wait_until(lambda: len(records(worker.output(), job_id)) == 1, 30, "it is logged")
        (stopped,) = records(worker.output(), job_id)

    assert (stopped["outcome"], stopped["state"]) == ("stopped", "failed_retryable")
    assert "another worker owns its job" in stopped["error"]


def records(output: str, job_id: str) -> list[dict[str, Any]]:
    """Return the records of one job's attempts, in the order in which they were written."""
    written = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    return [record for record in written if record.get("job_id") == job_id]
