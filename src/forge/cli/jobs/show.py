"""`forge jobs show`."""

from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

import click

from forge.cli.options import json_option, project_options, utc_option

if TYPE_CHECKING:
    from forge.app import Forge
    from forge.core.job import JobRecord
    from forge.core.timeline import Timeline, TimelineEntry
    from forge.jobs.search import FoundJobs

# The newest children that are shown; `forge jobs list --parent` has all.
MAX_CHILDREN = 20


@click.command()
@click.argument("job_id", type=click.UUID)
@json_option
@utc_option
@project_options
def show(job_id: UUID, app_option: str | None, config_path: Path | None, as_json: bool) -> None:
    """Show a job, its timeline (attempts, log, traces, audit) and the jobs that it dispatched."""
    from forge.cli.output import print_json
    from forge.cli.project import find_database, run

    app = find_database(app_option, config_path)
    shown = run(app, lambda app: _read(app, job_id))
    if as_json:
        print_json(
            _columns(shown.record)
            | {"failed_attempts": shown.attempts, "timeline": shown.timeline.items}
            | {"children": [_child(job) for job in shown.children.items]}
            | {"more_children": shown.children.next_cursor is not None}
        )
    else:
        _print(shown)


class ShownJob(NamedTuple):
    """A job with its failed attempts, its timeline and its newest children, redacted."""

    record: "JobRecord"
    attempts: list[dict[str, Any]]
    timeline: "Timeline"
    children: "FoundJobs"


async def _read(app: "Forge", job_id: UUID) -> ShownJob:
    from forge.cli.jobs.list import find
    from forge.core.job_filter import JobFilter
    from forge.core.sensitive.shown import shown_attempt, shown_job
    from forge.jobs.search import JobSearch
    from forge.store.jobs import attempts

    database = await (await app.session()).database()
    record, found = await app.get(job_id), await database.run(attempts(job_id))
    allowed = await app.catalog.sensitive_allowed(record.job_type)
    shown = [shown_attempt(row, record.input, allowed) for row in found]
    of_it = JobSearch(JobFilter(parent_id=job_id), is_summary=True)
    children = await find(app, of_it, MAX_CHILDREN)
    return ShownJob(shown_job(record, allowed), shown, await app.timeline(job_id), children)


def _columns(record: "JobRecord") -> dict[str, Any]:
    columns = {field.name: getattr(record, field.name) for field in fields(record)}
    return columns | {"state": record.state}


def _print(shown: ShownJob) -> None:
    from forge.cli.output import print_columns

    print_columns({k: v for k, v in _columns(shown.record).items() if v not in (None, ())})
    click.secho("\ntimeline", bold=True)
    if shown.timeline.truncated:
        click.echo("earlier entries are left out")
    for entry in shown.timeline.items:
        _print_entry(entry)
    _print_children(shown)


def _child(job: "JobRecord") -> dict[str, Any]:
    return {name: getattr(job, name) for name in ("id", "job_type", "status", "created_at")}


def _print_children(shown: ShownJob) -> None:
    from forge.cli.jobs.list import print_jobs

    children = shown.children
    if children.items:
        click.secho("\ndispatched jobs", bold=True)
        print_jobs(children.items)
    if children.next_cursor is not None:
        more = f"--parent {shown.record.id} --cursor {children.next_cursor}"
        click.echo(f"more: forge jobs list {more}")


def _print_entry(entry: "TimelineEntry") -> None:
    from forge.cli.output import say, text

    detail = dict(entry.detail)
    trace, level = detail.pop("trace", None), detail.pop("level", None)
    # The message says these already, or nothing that helps a person.
    for name in ("error", "exception", "number", "event", "actor", "status", "by"):
        detail.pop(name, None)
    detail |= detail.pop("fields", {})
    rest = "".join(f" {name}={text(value)}" for name, value in detail.items())
    kind = entry.kind if level is None else f"{entry.kind} {level}"
    say(f"{text(entry.at)}  {kind:<11}  {text(entry.message)}{rest}")
    if trace:
        say(trace.rstrip())
