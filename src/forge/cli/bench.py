"""`forge bench`: what this database and this machine can do, measured in a database apart."""

from dataclasses import asdict
from pathlib import Path

import click

from forge.cli.options import json_option, project_options


@click.command()
@click.option(
    "--jobs",
    "count",
    type=click.IntRange(100, 10_000_000),
    default=10_000,
    show_default=True,
    help="How many.",
)
@json_option
@project_options
def bench(app_option: str | None, config_path: Path | None, count: int, as_json: bool) -> None:
    """Measure dispatch, throughput, latency and WAL with jobs that do nothing.

    It runs in a fresh database beside yours, which it drops in the end.
    """
    from forge.cli.measure import measure
    from forge.cli.project import find_database, run
    from forge.cli.show import print_json

    app = find_database(app_option, config_path)
    measured = run(app, lambda app: measure(app, count))
    if as_json:
        print_json(asdict(measured))
        return
    click.echo(f"{measured.jobs} jobs that do nothing, one worker in this process")
    click.echo(f"dispatch, one by one   {measured.dispatches_per_second:10.0f} per second")
    click.echo(f"dispatch, in bulk      {measured.bulk_dispatches_per_second:10.0f} per second")
    click.echo(f"run                    {measured.jobs_per_second:10.0f} per second")
    click.echo(
        f"from dispatch to start {measured.latency_p50 * 1000:10.2f} ms in half of the cases"
    )
    click.echo(f"                       {measured.latency_p99 * 1000:10.2f} ms in 99 of 100")
    click.echo(f"WAL                    {measured.wal_bytes_per_job:10.0f} bytes per job")
