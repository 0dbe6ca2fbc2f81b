"""`forge top`: a live screen of rates, times, slots, types and findings."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from forge.cli.options import json_option, project_options, utc_option
from forge.cli.top.view import ORDERS, View

if TYPE_CHECKING:
    from rich.console import Console

    from forge.cli.top.snapshot import Snapshot

# Height of what is printed where there is no terminal: every type, every finding.
UNLIMITED = 1000
WIDTH = 140


@click.command()
@click.option("--last", default="15m", show_default=True, help="The window of the statistics.")
@click.option(
    "--sort", type=click.Choice(list(ORDERS)), default="rate", show_default=True, help="Of types."
)
@click.option("--type", "filter_", default="", help="Only types that contain this text.")
@click.option(
    "--interval",
    type=click.FloatRange(min=0.5, max=3600),
    default=2.0,
    show_default=True,
    help="Seconds between readings.",
)
@click.option("--once", is_flag=True, help="Print it once and exit.")
@json_option
@utc_option
@project_options
def top(
    app_option: str | None,
    config_path: Path | None,
    as_json: bool,
    once: bool,
    interval: float,
    last: str,
    sort: str,
    filter_: str,
) -> None:
    """Show what happens now: rates, times, slots, slowest and failing types, findings.

    Without a terminal, and with --json, it is printed once.
    """
    from forge.cli.output import console, print_json
    from forge.cli.project import find_database, run
    from forge.cli.top.snapshot import SnapshotReader

    app = find_database(app_option, config_path)
    view = View(sort=sort, filter=filter_, last=last)
    screen = console()
    if once or as_json or not screen.is_terminal or screen.is_dumb_terminal:
        shown = run(app, lambda app: SnapshotReader(app).read(last))
        if as_json:
            print_json(shown.as_json() | {"types": view.lines(shown.types)})
        else:
            _print(screen, shown, view)
        return
    from forge.cli.top.live import watch

    run(app, lambda app: watch(app, screen, view, interval))


def _print(screen: "Console", shown: "Snapshot", view: View) -> None:
    from forge.cli.top.screen import draw

    screen.width = screen.width if screen.is_terminal else WIDTH
    screen.print(draw(shown, view, screen.width, UNLIMITED))
