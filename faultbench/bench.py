"""Runs rows one after another and collects their outcomes."""

import asyncio
import shutil
import time
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path

from faultbench.outcome import CannotRun, Outcome, PromiseBroken, Verdict
from faultbench.registry import FaultRow
from faultbench.stage import Stage
from faultbench.workshop import Workshop


async def run_rows(
    rows: Iterable[FaultRow],
    workshop: Workshop,
    *,
    seed: int,
    runs: int | None = None,
    soak: float = 0,
    keep: Path | None = None,
    done: Callable[[FaultRow, Outcome], None],
) -> None:
    """Run these rows; the histories and logs of failed runs are copied to `keep`."""
    for row in rows:
        done(row, await run_row(row, workshop, seed=seed, runs=runs, soak=soak, keep=keep))


async def run_row(
    row: FaultRow,
    workshop: Workshop,
    *,
    seed: int,
    runs: int | None = None,
    soak: float = 0,
    keep: Path | None = None,
) -> Outcome:
    """Run one row as often as it specifies, or `runs` times; stop at the first failure."""
    total = Outcome()
    # A row of pytest tests runs once and reports the number of tests.
    wanted = 1 if row.is_pytest else runs or row.runs
    for run in range(1, wanted + 1):
        name = f"row-{row.number:02}-run-{run}"
        stage = Stage(
            workshop, workshop.folder / name, f"{seed}/{row.number}/{run}", run=run, soak=soak
        )
        outcome = await _run_once(row, stage, soak)
        total.add(outcome)
        if outcome.verdict is Verdict.FAILED and keep is not None:
            total.notes.append(
                f"run {run}: history and logs are in {_kept(stage.folder, keep).name}"
            )
        shutil.rmtree(stage.folder, ignore_errors=True)
        if outcome.verdict is not Verdict.HELD:
            break
    return total


async def _run_once(row: FaultRow, stage: Stage, soak: float) -> Outcome:
    began = time.monotonic()
    outcome = stage.outcome
    try:
        async with asyncio.timeout(row.timeout + 2 * soak):
            await row.scenario(stage)
    except CannotRun as reason:
        outcome.verdict, outcome.runs = Verdict.NOT_RUN, 0
        outcome.notes.append(str(reason))
    except (PromiseBroken, TimeoutError) as error:
        outcome.verdict = Verdict.FAILED
        outcome.notes.append(str(error) or f"not finished within {row.timeout:g} s")
    except Exception as error:
        # An error in the scenario itself proves nothing and must not pass as a result.
        outcome.verdict = Verdict.FAILED
        outcome.notes.append(f"the scenario failed: {type(error).__name__}: {error}")
        (stage.folder / "traceback").write_text(traceback.format_exc())
    finally:
        await stage.close()
    outcome.seconds = time.monotonic() - began
    return outcome


def _kept(folder: Path, keep: Path) -> Path:
    """Copy the histories and logs that explain a failure, without data directories."""
    target = keep / folder.name
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for path in folder.iterdir():
        if path.is_file():
            shutil.copy(path, target)
    for log in folder.glob("postgres-*/log"):
        shutil.copy(log, target / f"{log.parent.name}.log")
    return target
