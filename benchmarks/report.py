"""The table of ratios: each figure of Forge and the raw SQL baseline measured next to it."""

import json
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any

import click
import uvloop

from benchmarks import engine, flat, http, limit
from benchmarks.bound import judged, keeps
from benchmarks.idle import idle_cost
from benchmarks.server import ThrowawayServer
from benchmarks.snapshot import rate_under_snapshot
from forge.store.connection.database import Database
from forge.store.migrate import migrate

Measure = Callable[[], Awaitable[float]]
BOUNDS = {"idle statements/s": "≤ 2", "idle MiB": "≤ 60"}


@dataclass
class Ratio:
    """One line: Forge (`ours`) against the baseline (`theirs`), with the bound of the ratio."""

    name: str
    bound: str
    ours: list[float] = field(default_factory=list)
    theirs: list[float] = field(default_factory=list)
    lower_is_better: bool = False

    @property
    def value(self) -> float:
        """Return the median of the ratios of values that were measured next to each other."""
        return median(a / b for a, b in zip(self.ours, self.theirs, strict=True))

    @property
    def ratio_of_best(self) -> float:
        """Return the ratio of the best values, which are the least disturbed ones."""
        best = min if self.lower_is_better else max
        return best(self.ours) / best(self.theirs)

    @property
    def holds(self) -> bool:
        return keeps(self.value, self.bound)


@click.command()
@click.option("--database-url", help="Measure this empty database instead of a throwaway server.")
@click.option("--repetitions", default=3, show_default=True)
@click.option("--scale", default=1.0, show_default=True, help="Factor on all sizes; 0.1 is quick.")
@click.option("--only", help="Measure only lines whose name contains this text.")
@click.option("--json", "as_json", is_flag=True)
def main(
    database_url: str | None, repetitions: int, scale: float, only: str | None, as_json: bool
) -> None:
    """Measure Forge and raw SQL on the same server in the same run."""
    with nullcontext(database_url) if database_url else ThrowawayServer() as dsn:
        ratios, facts = uvloop.run(measured(dsn, repetitions, scale, only))
    if as_json:
        lines = [
            {
                **asdict(ratio),
                "ratio": ratio.value,
                "ratio_of_best": ratio.ratio_of_best,
                "holds": ratio.holds,
            }
            for ratio in ratios
        ]
        click.echo(json.dumps({"ratios": lines, "facts": facts}, indent=2))
    else:
        _print(ratios, facts)
    facts_hold = all(keeps(facts[name], BOUNDS[name]) for name in facts.keys() & BOUNDS.keys())
    sys.exit(0 if facts_hold and all(ratio.holds for ratio in ratios) else 1)


async def measured(
    dsn: str, repetitions: int, scale: float, only: str | None
) -> tuple[list[Ratio], dict[str, float]]:
    """Measure everything several times, alternating between ours and theirs."""
    database = Database(dsn)
    await migrate(database)
    await database.close()
    facts: dict[str, float] = {}
    plan = [entry for entry in _plan(dsn, scale, facts) if only is None or only in entry[0].name]
    if any(theirs is not None for _, _, theirs in plan):
        await limit.warm_up(dsn)
    for repetition in range(repetitions):
        for ratio, ours, theirs in plan:
            _log(f"{repetition + 1}/{repetitions} {ratio.name}")
            ratio.theirs.append(await theirs())
            ratio.ours.append(await ours())
    if only is None or only in "idle":
        _log("idle worker")
        idle = await idle_cost(30 * scale)
        facts |= {"idle statements/s": idle.statements, "idle MiB": idle.mebibytes}
    return [ratio for ratio, _, _ in plan], facts


def _plan(dsn: str, scale: float, facts: dict[str, float]) -> list[tuple[Ratio, Measure, Measure]]:
    return [
        *_drains(dsn, scale, facts),
        *_dispatches(dsn, scale, facts),
        *_flat(dsn, scale),
        *_held(dsn, scale),
    ]


def _drains(
    dsn: str, scale: float, facts: dict[str, float]
) -> list[tuple[Ratio, Measure, Measure]]:
    def one(
        name: str, bound: str, jobs: int, slots: int, batch: int, raw: tuple[int, int]
    ) -> tuple[Ratio, Measure, Measure]:
        count = max(100, int(jobs * scale))

        async def ours() -> float:
            drained = await engine.drain(dsn, count, slots=slots, batch=batch)
            facts[f"{name}: log bytes/job"] = round(drained.wal_bytes)
            facts[f"{name}: statements and commits/job"] = round(drained.commits, 3)
            return drained.rate

        async def theirs() -> float:
            return await limit.drain(dsn, count, *raw)

        return Ratio(name, bound), ours, theirs

    return [
        one("drain, 1000 slots, batch 500", "≥ 0.7", 150_000, 1000, 500, (500, 2)),
        one("drain, defaults", "≥ 0.7", 30_000, 10, 10, (10, 2)),
        one("drain, one at a time", "≥ 0.7", 2_000, 1, 1, (1, 1)),
    ]


def _dispatches(
    dsn: str, scale: float, facts: dict[str, float]
) -> list[tuple[Ratio, Measure, Measure]]:
    rows, seconds = int(150_000 * scale), 3 * scale
    samples = max(100, int(500 * scale))

    loads: list[http.Loaded] = []

    async def over_http() -> float:
        loads.append(loaded := await http.dispatch_rate(dsn, seconds))
        name = "dispatch over HTTP × 50: processor share of the"
        facts[f"{name} load generator"] = median(load.load_share for load in loads)
        facts[f"{name} server"] = median(load.server_share for load in loads)
        return loaded.rate

    async def our_latency() -> float:
        return (await engine.latency(dsn, samples)).p50

    async def their_latency() -> float:
        return (await limit.notify_round_trip(dsn, samples)).p50

    return [
        (
            Ratio("dispatch_many", "≥ 0.7"),
            lambda: engine.bulk_rate(dsn, rows),
            lambda: limit.copy_rate(dsn, rows),
        ),
        *(
            (
                Ratio(f"dispatch × {callers}", bound),
                lambda callers=callers: engine.single_rate(dsn, callers, seconds),
                # The most connections that a server of this size serves well.
                lambda callers=callers: limit.insert_rate(dsn, min(callers, 20), seconds),
            )
            for callers, bound in ((1, "≥ 0.9"), (20, "≥ 1.5"), (100, "≥ 3"))
        ),
        (
            Ratio("dispatch × 20, p50, of one insert per call", "≤ 1", lower_is_better=True),
            lambda: engine.single_latency(dsn, 20, seconds),
            lambda: engine.single_latency(dsn, 20, seconds, batched=False),
        ),
        (
            Ratio("dispatch over HTTP × 50", "≥ 0.4"),
            over_http,
            lambda: limit.insert_rate(dsn, 20, seconds),
        ),
        (
            Ratio("dispatch to handler, p50", "≤ 3", lower_is_better=True),
            our_latency,
            their_latency,
        ),
    ]


def _flat(dsn: str, scale: float) -> list[tuple[Ratio, Measure, Measure]]:
    many, few = int(1_000_000 * scale), 1_000
    return [
        _flat_line(dsn, scene, part, few, many)
        for scene in flat.SCENES
        for part in ("milliseconds", "buffers")
    ]


def _flat_line(
    dsn: str, scene: flat.Scene, part: str, few: int, many: int
) -> tuple[Ratio, Measure, Measure]:
    async def cost(others: int) -> float:
        return float(getattr(await flat.claim_cost(dsn, scene, others), part))

    bound = scene.bound if part == "buffers" else "≤ 1.3"
    ratio = Ratio(f"claim, {many:,} {scene.name}: {part}", bound, lower_is_better=True)
    return ratio, lambda: cost(many), lambda: cost(0 if scene.are_paused else few)


def _held(dsn: str, scale: float) -> list[tuple[Ratio, Measure, Measure]]:
    churn, jobs = int(100_000 * scale), int(50_000 * scale)
    return [
        (
            Ratio("drain under an old snapshot", "≥ 0.6"),
            lambda: rate_under_snapshot(dsn, churn, jobs, held=True),
            lambda: rate_under_snapshot(dsn, churn, jobs, held=False),
        )
    ]


def _print(ratios: Sequence[Ratio], facts: dict[str, Any]) -> None:
    for ratio in ratios:
        best = min if ratio.lower_is_better else max
        detail = (
            f"best {best(ratio.ours):>12,.2f} of {best(ratio.theirs):>12,.2f} "
            f"= {ratio.ratio_of_best:.2f}"
        )
        judged(ratio.name, ratio.value, ratio.bound, detail)
    for name, value in facts.items():
        if name in BOUNDS:
            judged(name, value, BOUNDS[name])
        else:
            click.echo(f"     {name:62} {value:10,.2f}")


def _log(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
