"""What the demonstration says, line by line."""

from datetime import datetime, timedelta
from typing import Any

from examples.firm.desk import Desk


def say(line: str) -> None:
    print(line, flush=True)


async def tell_end(desk: Desk, name: str, job_id: str) -> Any:
    """Wait for a job and say what came of it, and of each attempt that failed."""
    job = await desk.ended(job_id)
    attempts = (await desk.get(f"/_api/jobs/{job_id}/attempts"))["items"]
    starts = [one["started_at"] for one in attempts[1:]] + [job["started_at"]]
    for one, next_start in zip(attempts, starts, strict=False):
        wait = datetime.fromisoformat(next_start) - datetime.fromisoformat(one["ended_at"])
        again = f"; again after {wait.total_seconds():.1f} s" if wait > timedelta(0) else ""
        say(f"    {name}: attempt {one['attempt']} was {one['error_class']}{again}")
        say(f"        {one['error'].splitlines()[0]}")
    say(f"    {name}: {job['status']} at attempt {job['attempts']}")
    return job
