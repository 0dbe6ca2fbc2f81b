"""The measurements of the baseline, their repetitions and their output."""

import json
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass

import click
import uvloop

from benchmarks import limit
from benchmarks.figure import Figure, table
from benchmarks.reference_table import connected, sql
from benchmarks.server import ThrowawayServer

DRAINS = ((1, 1, 2_000), (1, 10, 5_000), (10, 2, 20_000), (100, 2, 50_000), (500, 2, 100_000))


@click.command()
@click.option("--database-url", help="Measure this server instead of a throwaway PostgreSQL 18.")
@click.option(
    "--repetitions", default=3, show_default=True, help="Repetitions of each measurement."
)
@click.option("--scale", default=1.0, show_default=True, help="Factor on all sizes; 0.1 is quick.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def main(database_url: str | None, repetitions: int, scale: float, as_json: bool) -> None:
    """Measure what raw SQL reaches on this machine."""
    with nullcontext(database_url) if database_url else ThrowawayServer() as dsn:
        server = uvloop.run(_described(dsn))
        figures = uvloop.run(measured(dsn, repetitions=repetitions, scale=scale))
    click.echo(_as_json(server, figures) if as_json else _as_table(server, figures))


async def measured(dsn: str, *, repetitions: int, scale: float = 1.0) -> list[Figure]:
    """Measure everything in rounds, so that a disturbance does not hit one figure only."""
    print("warming up", file=sys.stderr, flush=True)
    await limit.warm_up(dsn)
    plan = _plan(dsn, scale)
    rounds: list[list[Sequence[float]]] = [[] for _ in plan]
    for repetition in range(1, repetitions + 1):
        for measurement, values in zip(plan, rounds, strict=True):
            name = " / ".join(measurement.names)
            print(f"{repetition}/{repetitions} {name}", file=sys.stderr, flush=True)
            value = await measurement.once()
            values.append(value if isinstance(value, tuple) else (value,))
    return [
        figure
        for measurement, values in zip(plan, rounds, strict=True)
        for figure in measurement.figures(values)
    ]


@dataclass(frozen=True)
class _Measurement:
    names: tuple[str, ...]
    unit: str
    once: Callable[[], Awaitable[float | tuple[float, ...]]]
    lower_is_better: bool = False

    def figures(self, rounds: Sequence[Sequence[float]]) -> list[Figure]:
        return [
            Figure(name, self.unit, values, self.lower_is_better)
            for name, values in zip(self.names, zip(*rounds, strict=True), strict=True)
        ]


def _plan(dsn: str, scale: float) -> list[_Measurement]:
    def sized(size: int) -> int:
        return max(1, round(size * scale))

    return [
        *(_drain(dsn, sized(jobs), batch, connections) for batch, connections, jobs in DRAINS),
        _Measurement(("copy",), "rows/s", lambda: limit.copy_rate(dsn, sized(100_000))),
        *(
            _insert(dsn, connections, 2 * scale, notify)
            for connections in (1, 20)
            for notify in (False, True)
        ),
        _Measurement(
            ("notify and claim, p50", "notify and claim, p99"),
            "ms",
            lambda: limit.notify_round_trip(dsn, max(100, sized(1_000))),
            lower_is_better=True,
        ),
        *(_wal(dsn, batch, sized(20_000)) for batch in (10, 100, 500)),
    ]


def _drain(dsn: str, jobs: int, batch: int, connections: int) -> _Measurement:
    name = f"drain, batch {batch} × {connections}"
    return _Measurement((name,), "jobs/s", lambda: limit.drain(dsn, jobs, batch, connections))


def _insert(dsn: str, connections: int, seconds: float, notify: bool) -> _Measurement:
    name = f"insert{' and notify' if notify else ''} × {connections}"
    return _Measurement(
        (name,), "rows/s", lambda: limit.insert_rate(dsn, connections, seconds, notify=notify)
    )


def _wal(dsn: str, batch: int, jobs: int) -> _Measurement:
    return _Measurement(
        (f"log per drained job, batch {batch}",),
        "bytes",
        lambda: limit.wal_per_drained_job(dsn, batch, jobs),
        lower_is_better=True,
    )


async def _described(dsn: str) -> Mapping[str, str]:
    async with connected(dsn, 1) as (connection,):
        return {row["name"]: row["setting"] for row in await connection.fetch(sql("describe"))}


def _as_json(server: Mapping[str, str], figures: Sequence[Figure]) -> str:
    described = {"server": server, "figures": [figure.as_json() for figure in figures]}
    return json.dumps(described, indent=2)


def _as_table(server: Mapping[str, str], figures: Sequence[Figure]) -> str:
    settings = " ".join(f"{name}={setting}" for name, setting in server.items())
    return f"{settings}\n\n{table(figures)}"
