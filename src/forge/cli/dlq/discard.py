"""`forge dlq discard`: one dead letter, or all that match a filter."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from forge.cli.dlq.many import check_selection, filter_options, followed, print_plan
from forge.cli.options import BigInteger, actor, json_option, project_options
from forge.cli.output import print_either
from forge.core.dead_letter import CAUSES
from forge.core.errors import InvalidValue

if TYPE_CHECKING:
    from forge.app import Forge


@click.command()
@click.argument("dlq_id", type=BigInteger(), required=False)
@click.option(
    "--notes", help="Why it will not be reprocessed (required); stored with the dead letter."
)
@click.option("--all", "everything", is_flag=True, help="All dead letters under review.")
@filter_options
@click.option("--dry-run", is_flag=True, help="Show what would be done and change nothing.")
@click.option("--no-wait", is_flag=True, help="Do not wait for a worker to carry it out.")
@json_option
@project_options
def discard(
    dlq_id: int | None,
    notes: str | None,
    everything: bool,
    dry_run: bool,
    no_wait: bool,
    app_option: str | None,
    config_path: Path | None,
    as_json: bool,
    **options: Any,
) -> int:
    """Close the review of one dead letter, or of all that match a filter, without new jobs."""
    from forge.cli.project import find_database, run

    filters = {name: options[name] for name in CAUSES}
    check_selection(dlq_id, filters, everything)
    app = find_database(app_option, config_path)
    if dlq_id is not None:
        if dry_run or no_wait:
            given = "--dry-run" if dry_run else "--no-wait"
            raise InvalidValue(f"{given} applies to many dead letters; leave it out")
        run(app, lambda app: app.dead_letters.discard(dlq_id, notes=notes, actor=actor()))
        done = {"dlq_id": dlq_id, "status": "discarded"}
        print_either(as_json, done, f"{dlq_id} discarded")
        return 0
    if dry_run:
        return run(app, lambda app: print_plan(app, filters, "discarded", as_json))
    return run(app, lambda app: _many(app, filters, notes, no_wait, as_json))


async def _many(
    app: "Forge", filters: dict[str, Any], notes: str | None, no_wait: bool, as_json: bool
) -> int:
    handle = await app.dead_letters.discard_many(**filters, notes=notes, actor=actor())
    report = await followed(app, handle, as_json, no_wait=no_wait)
    if report is not None:
        skipped = f", {report['skipped']} skipped" if report["skipped"] else ""
        summary = f"{report['discarded']} discarded{skipped}"
        print_either(as_json, {"request_id": handle.id, **report}, summary)
    return 0
