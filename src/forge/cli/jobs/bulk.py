"""`forge jobs bulk`: act on all jobs that match."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import click

from forge.cli.jobs.filters import content_options, job_filter_options, take_criteria
from forge.cli.options import actor, json_option, project_options, utc_option
from forge.core.bulk import HIGHEST_RATE, BulkAction
from forge.core.errors import InvalidValue
from forge.core.job import Priority

if TYPE_CHECKING:
    from forge.app import Forge
    from forge.core.job_filter import InputValue
    from forge.jobs.handle import JobHandle

ACTIONS = {action.replace("_", "-"): action for action in BulkAction}


@click.command()
@click.argument("action", type=click.Choice(list(ACTIONS)))
@job_filter_options
@content_options
@click.option("--id", "ids", multiple=True, type=click.UUID, help="This job; may be repeated.")
@click.option("--all", "everything", is_flag=True, help="All jobs that the action applies to.")
@click.option(
    "--to-priority",
    type=click.Choice([priority.name.lower() for priority in Priority]),
    help="For reprioritise; for rerun that of the new jobs.",
)
@click.option("--to-queue", help="For move; for rerun that of the new jobs.")
@click.option(
    "--rate",
    type=click.FloatRange(0, HIGHEST_RATE, min_open=True),
    help="Jobs per second; default: as fast as ordinary jobs allow.",
)
@click.option("--reason", help="Reason (required), stored in the audit log.")
@click.option("--dry-run", is_flag=True, help="Count the jobs, show some, and change nothing.")
@click.option("--no-wait", is_flag=True, help="Do not wait for a worker to carry it out.")
@json_option
@utc_option
@project_options
def bulk(
    action: str,
    q: str | None,
    inputs: "list[InputValue]",
    ids: Sequence[UUID],
    everything: bool,
    to_priority: Any,
    to_queue: str | None,
    rate: float | None,
    reason: str | None,
    dry_run: bool,
    no_wait: bool,
    app_option: str | None,
    config_path: Path | None,
    as_json: bool,
    **filters: Any,
) -> int:
    """Act on all jobs that match a filter, in slices that a worker carries out."""
    from forge.cli.project import find_database, run

    search = {"q": q, "input": dict(inputs) or None}
    criteria: dict[str, Any] = {**take_criteria(filters)}
    criteria |= {name: value for name, value in search.items() if value is not None}
    which: dict[str, Any] = {"filter": criteria or None, "ids": ids or None, "all": everything}
    wanted = ACTIONS[action]
    if dry_run:
        app = find_database(app_option, config_path)
        return run(app, lambda app: _plan(app, wanted, which, as_json))
    if reason is None:
        raise InvalidValue("--reason is required; it is stored in the audit log")
    options: dict[str, Any] = {"priority": to_priority, "queue": to_queue, "rate": rate}
    asked = {**which, **options, "reason": reason, "actor": actor()}
    app = find_database(app_option, config_path)
    return run(app, lambda app: _request(app, wanted, asked, no_wait, as_json))


async def _plan(app: "Forge", action: BulkAction, which: dict[str, Any], as_json: bool) -> int:
    from forge.cli.jobs.list import print_jobs, summary
    from forge.cli.output import print_json

    plan = await app.plan_bulk(action, **which)
    if as_json:
        sample = [summary(job) for job in plan.sample]
        print_json({"count": plan.count, "precision": plan.precision, "sample": sample})
        return 0
    bound = {"exact": "", "at_least": "at least ", "estimate": "about "}[plan.precision]
    click.echo(f"{action}: {bound}{plan.count:,} jobs match")
    if plan.sample:
        print_jobs(plan.sample)
    return 0


async def _request(
    app: "Forge", action: BulkAction, asked: dict[str, Any], no_wait: bool, as_json: bool
) -> int:
    handle = await app.bulk(action, **asked)
    return await follow_bulk(app, handle, "jobs", no_wait, as_json)


async def follow_bulk(
    app: "Forge", handle: "JobHandle", rows: str, no_wait: bool, as_json: bool
) -> int:
    """Show the progress of a request on many rows, print its report and return the exit code."""
    from forge.cli.jobs.follow import INTERRUPTED, follow_request
    from forge.cli.output import print_either
    from forge.cli.workers import require_live_worker

    if no_wait:
        print_either(as_json, {"request_id": handle.id}, f"requested: {handle.id}")
        return 0
    await require_live_worker(app, handle)
    if not await follow_request(app, handle, as_json):
        return INTERRUPTED
    report = await handle.result()
    print_either(as_json, {"request_id": handle.id, **report}, _summary(report, rows))
    return 1 if report["stopped"] or report["failed"] or report["locked"] else 0


def _summary(report: dict[str, Any], rows: str) -> str:
    counts = {name: report[name] for name in ("skipped", "failed", "locked") if report[name]}
    rest = "".join(f", {count:,} {name}" for name, count in counts.items())
    errors = "".join(f"\n{error}" for error in report["errors"])
    end = f"stopped: {report['stopped']}" if report["stopped"] else "done"
    return f"{report['action']}: {report['done']:,} {rows}{rest}; {end}{errors}"
