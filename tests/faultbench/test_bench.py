"""A short form of the bench: the real engine passes, and broken engines are caught."""

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from faultbench.bench import run_row
from faultbench.outcome import Outcome, Verdict
from faultbench.registry import ROWS
from faultbench.workshop import Workshop

from faultbench import rows

rows.register_all()
# Each waits until real processes die and their death is detected.
pytestmark = pytest.mark.timeout(300)
RunRow = Callable[..., Awaitable[Outcome]]


@pytest.fixture
async def run(tmp_path: Path) -> AsyncIterator[RunRow]:
    """Run one row once, on the real engine or on one that is broken in the named way."""
    opened: list[Workshop] = []

    async def run(number: int, *, broken: str | None = None) -> Outcome:
        app = "faultbench.apps.jobs:app" if broken is None else "tests.faultbench.broken_app:app"
        workshop = Workshop(app, {"FAULTBENCH_BROKEN": broken or ""})
        opened.append(workshop)
        return await run_row(ROWS[number], workshop, seed=1, runs=1, keep=tmp_path)

    yield run
    for workshop in opened:
        workshop.close()


@pytest.mark.parametrize("number", [14, 32, 40])
async def test_the_real_engine_keeps_its_promise(run: RunRow, number: int) -> None:
    outcome = await run(number)

    assert outcome.verdict is Verdict.HELD, outcome.notes
    assert outcome.lost == 0
    assert outcome.jobs


@pytest.mark.parametrize(
    ("number", "broken", "finding"),
    [
        pytest.param(10, "heartbeat on the loop", "overlapping|ran twice", marks=pytest.mark.slow),
        (12, "rescue by id", "overlapping|ran twice"),
        pytest.param(15, "listener without poll", "not within", marks=pytest.mark.slow),
    ],
)
async def test_a_broken_engine_is_caught(
    run: RunRow, number: int, broken: str, finding: str, tmp_path: Path
) -> None:
    outcome = await run(number, broken=broken)

    assert outcome.verdict is Verdict.FAILED
    assert re.search(finding, outcome.notes[0])
    assert (tmp_path / f"row-{number:02}-run-1" / "history.jsonl").exists()


async def test_a_row_that_cannot_run_does_not_count_as_passed(
    run: RunRow, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))  # a folder without programs

    outcome = await run(28)

    assert outcome.verdict is Verdict.NOT_RUN
    assert outcome.runs == 0
    assert outcome.notes == ["shifting a process's clock needs a C compiler (cc)"]
