"""`forge dlq discard`: one dead letter, or all that match a filter."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from forge.cli.dlq.many import check_selection, filter_options, print_plan
from forge.cli.options import BigInteger, actor, json_option, project_options
from forge.cli.output import print_either
from forge.core.bulk import HIGHEST_RATE
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
@click.option(
    "--rate",
    type=click.FloatRange(0, HIGHEST_RATE, min_open=True),
    help="Dead letters per second; default: as fast as ordinary jobs allow.",
)
@click.option("--dry-run", is_flag=True, help="Show what would be done and change nothing.")
@click.option("--no-wait", is_flag=True, help="Do not wait for a worker to carry it out.")
@json_option
@project_options
def discard(
    dlq_id: int | None,
    notes: str | None,
    everything: bool,
    rate: float | None,
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
        many = {"--dry-run": dry_run, "--no-wait": no_wait, "--rate": rate}
        if given := next((name for name, value in many.items() if value), None):
            raise InvalidValue(f"{given} applies to many dead letters; leave it out")
        run(app, lambda app: app.dead_letters.discard(dlq_id, notes=notes, actor=actor()))
        done = {"dlq_id": dlq_id, "status": "discarded"}
        print_either(as_json, done, f"{dlq_id} discarded")
        return 0
    if dry_run:
        return run(app, lambda app: print_plan(app, filters, "discarded", as_json))
    asked = filters | {"notes": notes, "rate": rate, "actor": actor()}
    return run(app, lambda app: _many(app, asked, no_wait, as_json))


async def _many(app: "Forge", asked: dict[str, Any], no_wait: bool, as_json: bool) -> int:
    from forge.cli.jobs.bulk import follow_bulk

    handle = await app.dead_letters.discard_many(**asked)
    return await follow_bulk(app, handle, "dead letters", no_wait, as_json)
