"""`forge overview`: jobs by status, slots, workers, and what needs attention."""

from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from forge.cli.options import json_option, project_options, utc_option

if TYPE_CHECKING:
    from forge.app import Forge
    from forge.core.finding import Finding
    from forge.core.job_counts import BoundedCount
    from forge.core.overview import OldestReady, Overview


@click.command()
@json_option
@utc_option
@project_options
def overview(app_option: str | None, config_path: Path | None, as_json: bool) -> None:
    """Show jobs by status, the oldest ready job, slots, workers, pauses and findings."""
    from forge.cli.output import print_columns, print_findings, print_json
    from forge.cli.project import find_database, run

    found, findings = run(find_database(app_option, config_path), _read)
    if as_json:
        print_json(asdict(found) | {"findings": findings})
        return
    print_columns(_columns(found))
    if findings:
        click.echo("")
        print_findings(findings)


async def _read(app: "Forge") -> "tuple[Overview, list[Finding]]":
    return await app.overview(), await app.findings()


def _columns(found: "Overview") -> dict[str, Any]:
    return {
        "jobs": _joined(
            f"{_count(count)} {status}" for status, count in found.jobs.items() if count.count
        ),
        "oldest ready": _oldest(found.oldest_ready),
        "slots": f"{found.slots.in_use} of {found.slots.total} in use",
        "workers": _joined(
            f"{count} {state}" for state, count in asdict(found.workers).items() if count
        ),
        "dead letters": f"{found.dead_letters_waiting:,} waiting",
        "schedules": f"{_count(found.schedules_failing)} failing",
        "pauses": len(found.pauses),
    }


def _joined(parts: Iterable[str]) -> str:
    return ", ".join(parts) or "none"


def _count(count: "BoundedCount") -> str:
    """Write a count with its precision."""
    mark = {"exact": "", "at_least": "over ", "estimate": "about "}[count.precision]
    return f"{mark}{count.count:,}"


def _oldest(ready: "OldestReady | None") -> str:
    from forge.cli.figures import milliseconds

    if ready is None:
        return "none"
    waiting = milliseconds(1000 * ready.waiting_seconds)
    return f"{ready.job_type} in queue {ready.queue}, due for {waiting} ({ready.job_id})"
