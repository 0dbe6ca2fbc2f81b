"""`forge jobs list`."""

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import click

from forge.cli.jobs.filters import content_options, job_filter_options, take_filter
from forge.cli.options import json_option, limit_option, project_options, utc_option
from forge.core.lifecycle import Status

if TYPE_CHECKING:
    from forge.app import Forge
    from forge.core.job import JobRecord
    from forge.core.job_filter import InputValue
    from forge.jobs.search import FoundJobs, JobSearch

COLUMNS = ["id", "type", "status", "attempts", "queue", "progress", "scheduled", "message"]
# Characters of the message that the table shows.
MESSAGE_WIDTH = 80
# What lists leave out.
PAYLOADS = ("input", "output", "checkpoint", "meta")


@click.command("list")
@job_filter_options
@content_options
@limit_option()
@click.option("--cursor", type=click.UUID, help="Continue after this job.")
@json_option
@utc_option
@project_options
def list_jobs(
    app_option: str | None,
    config_path: Path | None,
    as_json: bool,
    q: str | None,
    inputs: "list[InputValue]",
    limit: int,
    cursor: UUID | None,
    **filters: Any,
) -> None:
    """List jobs, newest first, without their payloads."""
    from forge.cli.output import print_json
    from forge.cli.project import find_database, run
    from forge.jobs.search import JobSearch

    wanted = JobSearch(take_filter(filters), q, inputs, is_summary=True)
    app = find_database(app_option, config_path)
    page = run(app, lambda app: find(app, wanted, limit, cursor))
    if as_json:
        items = [summary(job) for job in page.items]
        rest = {"next_cursor": page.next_cursor, "stopped_early": page.stopped_early}
        print_json({"items": items, **rest})
    else:
        _print(page)


async def find(
    app: "Forge", wanted: "JobSearch", limit: int, cursor: UUID | None = None
) -> "FoundJobs":
    """Return a page of jobs, with secrets redacted."""
    from forge.jobs.search import JobReader, call_on_loop, find_jobs

    database = await (await app.session()).database()
    reader = JobReader(database.run, database.run, app.catalog, call_on_loop)
    return await find_jobs(reader, wanted, limit, cursor)


def summary(job: "JobRecord") -> dict[str, Any]:
    """Return a job without its payloads."""
    names = [field.name for field in fields(job) if field.name not in PAYLOADS]
    return {name: getattr(job, name) for name in names} | {"state": job.state}


def _print(page: "FoundJobs") -> None:
    from forge.cli.output import say_more

    if page.items:
        print_jobs(page.items)
    say_more(None if page.items else "no jobs found", page.next_cursor, page.stopped_early)


def print_jobs(jobs: "Sequence[JobRecord]") -> None:
    """Write a table of jobs."""
    from forge.cli.output import print_table, shorten

    print_table(
        COLUMNS,
        [
            (
                job.id,
                job.job_type,
                job.status,
                f"{job.attempts}/{job.max_attempts}",
                job.queue,
                _progress(job),
                job.scheduled_at,
                shorten(_message(job), MESSAGE_WIDTH),
            )
            for job in jobs
        ],
    )


def _progress(job: "JobRecord") -> str | None:
    """Return the progress of a running or completed job."""
    is_moving = job.status in (Status.RUNNING, Status.COMPLETED)
    return f"{job.progress_percent or 0}%" if is_moving else None


def _message(job: "JobRecord") -> str | None:
    """Return the progress message of a running job, else the error of its last attempt."""
    if job.status in (Status.RUNNING, Status.COMPLETED):
        error = job.last_error if job.status is Status.RUNNING else None
        return job.progress_message or error
    return job.last_error or job.progress_message
