"""Output of the demonstration."""

from datetime import datetime, timedelta
from typing import Any

from examples.firm.api_client import ApiClient


def say(line: str) -> None:
    print(line, flush=True)


async def print_result(client: ApiClient, name: str, job_id: str) -> Any:
    """Wait for a job and print its status and each failed attempt."""
    job = await client.wait_for(job_id)
    attempts = (await client.get(f"/_api/jobs/{job_id}/attempts"))["items"]
    starts = [one["started_at"] for one in attempts[1:]] + [job["started_at"]]
    for one, next_start in zip(attempts, starts, strict=False):
        wait = datetime.fromisoformat(next_start) - datetime.fromisoformat(one["ended_at"])
        again = f"; retried after {wait.total_seconds():.1f} s" if wait > timedelta(0) else ""
        say(f"    {name}: attempt {one['attempt']} was {one['error_class']}{again}")
        say(f"        {one['error'].splitlines()[0]}")
    say(f"    {name}: {job['status']} at attempt {job['attempts']}")
    return job
