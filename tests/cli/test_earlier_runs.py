"""A handler knows whether an earlier run started, even if its worker was killed."""

import json
from pathlib import Path

from tests.cli.command import Project

APP = """
import asyncio
from pathlib import Path

import forge

app = forge.Forge()


@app.job
async def report(ctx: forge.JobContext, input: dict) -> dict:
    if not Path(input["gate"]).exists():
        await asyncio.sleep(300)
    return {
        "attempt": ctx.attempt, "crashes": ctx.crashes, "runs": ctx.runs, "is_retry": ctx.is_retry
    }
"""

# As the killed worker left it if it had begun the job and not written that yet.
CLAIM = """
    update forge_jobs
    set status = 'claimed', worker_id = (select worker_id from forge_jobs where id = %s),
        lease = lease + 1, attempts = attempts + 1, claimed_at = now()
    where id = %s
    returning id
"""


def test_runs_of_a_killed_worker_are_counted_also_before_their_start_was_written(
    database_url: str, tmp_path: Path
) -> None:
    (tmp_path / "telling.py").write_text(APP)
    project, gate = Project(database_url, tmp_path), tmp_path / "gate"
    project.env["FORGE_WORKER_DEAD_AFTER"] = "4s"
    given = json.dumps({"gate": str(gate)})
    dispatch = "select forge_dispatch('report', %s)::text"
    with project.worker(app="telling:app") as killed:
        (running,) = project.row(dispatch, given)
        project.wait_for_status(running, "running")
        killed.sigkill()
    (claimed,) = project.row(dispatch, given)
    project.row(CLAIM, running, claimed)
    gate.touch()

    with project.worker(app="telling:app"):
        for job_id in (running, claimed):
            project.wait_for_status(job_id, "completed")
        outputs = [
            project.row("select output from forge_jobs where id = %s", id)[0]
            for id in (running, claimed)
        ]

    assert outputs == [{"attempt": 1, "crashes": 1, "runs": 2, "is_retry": True}] * 2
