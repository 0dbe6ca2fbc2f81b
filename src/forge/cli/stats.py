"""`forge stats`: rates, waiting and running times, and failures over time."""

from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from forge.cli.options import Moment, NonEmptyText, json_option, project_options, utc_option

if TYPE_CHECKING:
    from forge.app import Forge
    from forge.core.job_statistics import JobStatistics, StatisticsByType, StatisticsPoint
    from forge.jobs.statistics_reader import StatisticsFilters

COLUMNS = ["type", "queue", "rate", "wait p50", "wait p95", "wait p99", "run p50", "run p95"]
COLUMNS += ["run p99", "completed", "failed", "failed %", "retried", "crashed"]


@click.command()
@click.option("--type", "job_type", type=NonEmptyText(), help="Only jobs of this type.")
@click.option("--queue", type=NonEmptyText(), help="Only jobs in this queue.")
@click.option("--tenant", "tenant_id", type=int, help="Only the outcomes of this tenant.")
@click.option("--last", help="How far back, such as 15m, 6h or 7d; default: 1h.")
@click.option("--from", "since", type=Moment(), help="From this time on, instead of --last.")
@click.option("--to", "until", type=Moment(), help="Until this time; default: now.")
@click.option("--step", help="The length of a step, such as 5m; default: about 100 steps.")
@json_option
@utc_option
@project_options
def stats(
    app_option: str | None,
    config_path: Path | None,
    as_json: bool,
    step: str | None,
    last: str | None,
    since: datetime | None,
    **rest: Any,
) -> None:
    """Show rates, waiting and running times, and failures, over time and by type."""
    from forge.cli.output import print_json
    from forge.cli.project import find_database, run

    filters: StatisticsFilters = {"last": last, "since": since, **rest}  # type: ignore[typeddict-item]
    app = find_database(app_option, config_path)
    series, types = run(app, lambda app: _read(app, filters, step))
    if as_json:
        print_json(_plain(series) | {"types": [asdict(item) for item in types.items]})
    else:
        _print(series, types)


async def _read(
    app: "Forge", filters: "StatisticsFilters", step: str | None
) -> "tuple[JobStatistics, StatisticsByType]":
    series = await app.statistics(**filters | {"step": step})
    return series, await app.statistics_by_type(**filters)


def _plain(series: "JobStatistics") -> dict[str, Any]:
    """Return the same shape as GET /_api/statistics."""
    plain = asdict(series)
    return {"from": plain.pop("since"), "to": plain.pop("until"), **plain}


def _print(series: "JobStatistics", types: "StatisticsByType") -> None:
    from forge.cli.figures import milliseconds, per_minute, percent
    from forge.cli.output import print_table, text
    from forge.core.duration import format_duration

    click.echo(
        f"from {text(series.since)} to {text(series.until)}, in steps of "
        f"{format_duration(series.step)}"
    )
    if not types.items:
        click.echo("no jobs ended in this time; workers write statistics every 10 s")
        return
    _print_lines(series, types)
    print_table(
        COLUMNS,
        [
            (
                item.job_type or "all",
                item.queue,
                per_minute(item.per_minute),
                *map(milliseconds, (item.wait_ms.p50, item.wait_ms.p95, item.wait_ms.p99)),
                *map(milliseconds, (item.run_ms.p50, item.run_ms.p95, item.run_ms.p99)),
                f"{item.completed:,}",
                f"{item.failed:,}",
                percent(item.failed_percent),
                f"{item.retried:,}",
                f"{item.crashed:,}",
            )
            for item in types.items
        ],
    )


def _print_lines(series: "JobStatistics", types: "StatisticsByType") -> None:
    """Write a line with a sparkline for each of the three questions."""
    from forge.cli.figures import milliseconds, per_minute, percent, sparkline

    points = series.series
    ended = [point.completed + point.failed for point in points]
    failed = [_share(point) for point in points]
    waits = [point.wait_ms.p95 for point in points]
    total, failures = sum(ended), sum(point.failed for point in points)
    rate = per_minute(sum(item.per_minute for item in types.items))
    worst = max((wait for wait in waits if wait is not None), default=None)
    lines = [
        ("jobs", rate, sparkline(ended)),
        ("wait p95", f"up to {milliseconds(worst)}", sparkline(waits)),
        ("failed", percent(100 * failures / total if total else None), sparkline(failed)),
    ]
    click.echo()
    for name, figure, line in lines:
        click.echo(f"{name:<9} {figure:<16} {line}".rstrip())
    click.echo()


def _share(point: "StatisticsPoint") -> float | None:
    ended = point.completed + point.failed
    return point.failed / ended if ended else None
