"""`forge dlq reprocess`: one dead letter, or all that match a filter."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from forge.cli.dlq.many import check_selection, filter_options, followed, print_plan
from forge.cli.options import BigInteger, actor, json_option, project_options, read_json
from forge.cli.output import print_either
from forge.core.dead_letter import CAUSES
from forge.core.errors import InvalidValue
from forge.core.job import Priority

if TYPE_CHECKING:
    from forge.app import Forge

BULK_OPTIONS = ("rate", "canary", "canary_timeout", "max_failures", "priority", "no_wait")


@click.command()
@click.argument("dlq_id", type=BigInteger(), required=False)
@click.option("--notes", help="Reason, stored with the dead letter and in the audit log.")
@click.option("--payload", help="JSON payload to use instead of the original one.")
@click.option(
    "--patch",
    metavar="JSON",
    help="A JSON merge patch (RFC 7396) of the payload; null removes a field.",
)
@click.option("--all", "everything", is_flag=True, help="All dead letters under review.")
@filter_options
@click.option("--rate", default=10.0, show_default=True, help="Dead letters per second.")
@click.option(
    "--canary", default=1, show_default=True, help="Number to reprocess first; 0 for none."
)
@click.option(
    "--canary-timeout", default="5m", show_default=True, help="Time to wait for the canaries."
)
@click.option(
    "--max-failures", default=5, show_default=True, help="Stop after this many have failed again."
)
@click.option(
    "--priority",
    default="low",
    show_default=True,
    type=click.Choice([priority.name.lower() for priority in Priority]),
    help="Priority of the new jobs.",
)
@click.option("--dry-run", is_flag=True, help="Show what would be done and change nothing.")
@click.option("--no-wait", is_flag=True, help="Do not wait for a worker to carry it out.")
@json_option
@project_options
def reprocess(
    dlq_id: int | None,
    payload: str | None,
    patch: str | None,
    everything: bool,
    app_option: str | None,
    config_path: Path | None,
    as_json: bool,
    **options: Any,
) -> int:
    """Dispatch new jobs from dead letters: one by its id, or all that match a filter."""
    from forge.cli.project import find_database, run

    filters = {name: options.pop(name) for name in CAUSES}
    check_selection(dlq_id, filters, everything)
    if dlq_id is None and (payload is not None or patch is not None):
        given = "--patch" if payload is None else "--payload"
        raise InvalidValue(f"{given} applies to one dead letter; pass its id")
    app = find_database(app_option, config_path)
    if dlq_id is not None:
        _reject_bulk_options()
        edit = _edit(payload, patch) | {"notes": options["notes"]}
        act = _plan_one if options["dry_run"] else _one
        return run(app, lambda app: act(app, dlq_id, edit, as_json))
    return run(app, lambda app: _many(app, filters, as_json, **options))


def _reject_bulk_options() -> None:
    context = click.get_current_context()
    for name in BULK_OPTIONS:
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise InvalidValue(
                f"--{name.replace('_', '-')} applies to many dead letters; leave it out, or pass a "
                "filter instead of an id"
            )


def _edit(payload: str | None, patch: str | None) -> dict[str, Any]:
    """Read the options that edit the payload."""
    given = {"payload": payload, "patch": patch}
    read = {name: read_json(text, f"--{name}") for name, text in given.items() if text is not None}
    for name, value in read.items():
        if value is None:
            raise InvalidValue(f"--{name} is null; leave it out to keep the original payload")
    return read


async def _plan_one(app: "Forge", dlq_id: int, edit: dict[str, Any], as_json: bool) -> int:
    """Check what `_one` would do, and change nothing."""
    letter = await app.dead_letters.check_reprocess(dlq_id, **edit)
    plan = {"letters": 1, "dlq_id": dlq_id, "job_type": letter.job_type}
    print_either(as_json, plan, f"{dlq_id} ({letter.job_type}) would be reprocessed")
    return 0


async def _one(app: "Forge", dlq_id: int, edit: dict[str, Any], as_json: bool) -> int:
    made = await app.dead_letters.reprocess(dlq_id, **edit, actor=actor())
    print_either(as_json, made._asdict(), f"{dlq_id} reprocessed as job {made.new_job_id}")
    return 0


async def _many(
    app: "Forge",
    filters: dict[str, Any],
    as_json: bool,
    *,
    dry_run: bool,
    no_wait: bool,
    **options: Any,
) -> int:
    if dry_run:
        return await print_plan(app, filters, "reprocessed", as_json)
    handle = await app.dead_letters.reprocess_many(**filters, **options, actor=actor())
    report = await followed(app, handle, as_json, no_wait=no_wait)
    if report is None:
        return 0
    print_either(as_json, {"request_id": handle.id, **report}, _summary(report))
    return 1 if report["stopped"] else 0


def _summary(report: dict[str, Any]) -> str:
    end = f"stopped: {report['stopped']}" if report["stopped"] else "done"
    counts = {
        "succeeded": report["succeeded"],
        "failed again": report["failed_again"],
        "cancelled": report["cancelled"],
        "deleted": report["deleted"],
        "not ended yet": report["unfinished"],
    }
    outcomes = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
    watched = f"; of those that were watched: {outcomes}" if outcomes else ""
    return f"{report['reprocessed']} reprocessed, {end}{watched}"
