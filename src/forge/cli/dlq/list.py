"""`forge dlq list` and `forge dlq groups`."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from forge.cli.dlq.many import filter_options
from forge.cli.options import (
    BigInteger,
    json_option,
    limit_option,
    project_options,
    utc_option,
)
from forge.core.dead_letter import STATUSES, UNDER_REVIEW

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forge.app import Forge
    from forge.core.dead_letter import DeadLetterGroup, Page

# Characters of an error message that a table shows.
MESSAGE_WIDTH = 80


@click.command("list")
@click.option(
    "--status", type=click.Choice(list(STATUSES)), help="Only dead letters with this status."
)
@filter_options
@limit_option()
@click.option("--cursor", "before", type=BigInteger(), help="Continue after this dead letter.")
@json_option
@utc_option
@project_options
def list_letters(
    app_option: str | None, config_path: Path | None, as_json: bool, **filters: Any
) -> None:
    """List dead letters, newest first."""
    from forge.cli.output import print_json
    from forge.cli.project import find_database, run

    app = find_database(app_option, config_path)
    page = run(app, lambda app: _read(app, filters))
    if as_json:
        hidden = {"payload", "edited_payload", "attempts"}
        items = [{k: v for k, v in asdict(i).items() if k not in hidden} for i in page.items]
        print_json(
            {"items": items, "total_count": page.total_count, "next_cursor": page.next_cursor}
        )
    else:
        _print(page)


@click.command()
@click.option(
    "--status",
    type=click.Choice(list(STATUSES)),
    default=UNDER_REVIEW,
    show_default=True,
    help="Only dead letters with this status.",
)
@filter_options
@limit_option()
@json_option
@utc_option
@project_options
def groups(app_option: str | None, config_path: Path | None, as_json: bool, **filters: Any) -> None:
    """Group dead letters by cause, most frequent first."""
    from forge.cli.output import print_json
    from forge.cli.project import find_database, run

    app = find_database(app_option, config_path)
    found = run(app, lambda app: _read_groups(app, filters))
    if as_json:
        print_json([asdict(group) for group in found])
    else:
        print_groups(found)


async def _read(app: "Forge", filters: dict[str, Any]) -> "Page":
    from forge.dead_letters.shown import shown_letters

    database = await (await app.session()).database()
    page = await app.dead_letters.list(**filters)
    return page._replace(items=await shown_letters(app.catalog, page.items, database.run))


async def _read_groups(app: "Forge", filters: dict[str, Any]) -> "Sequence[DeadLetterGroup]":
    return await shown(app, await app.dead_letters.groups(**filters))


async def shown(app: "Forge", groups: "Sequence[DeadLetterGroup]") -> "Sequence[DeadLetterGroup]":
    """Return groups with the secrets of their jobs redacted."""
    from forge.dead_letters.shown import shown_groups

    database = await (await app.session()).database()
    return await shown_groups(app.catalog, groups, database.run)


def print_groups(found: "Sequence[DeadLetterGroup]") -> None:
    """Write groups as a table."""
    from forge.cli.output import print_table, shorten

    if not found:
        click.echo("no dead letters found")
        return
    print_table(
        [
            "fingerprint",
            "letters",
            "type",
            "class",
            "exception",
            "place",
            "last seen",
            "for example",
        ],
        [
            (
                group.fingerprint,
                group.letters,
                group.job_type,
                group.error_class,
                group.exception,
                group.place,
                group.last_seen,
                shorten(group.error_message, MESSAGE_WIDTH),
            )
            for group in found
        ],
    )


def _print(page: "Page") -> None:
    from forge.cli.output import print_table, shorten

    if not page.items:
        click.echo("no dead letters found")
        return
    print_table(
        ["dlq id", "type", "status", "class", "attempts", "tenant", "created", "error"],
        [
            (
                letter.dlq_id,
                letter.job_type,
                letter.status,
                letter.error_class,
                letter.attempt_count,
                letter.tenant_id,
                letter.created_at,
                shorten(letter.error_message, MESSAGE_WIDTH),
            )
            for letter in page.items
        ],
    )
    if page.next_cursor is not None:
        click.echo(f"{page.total_count} in total; more: --cursor {page.next_cursor}")
