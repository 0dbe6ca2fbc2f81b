"""The dead letter benchmark in a short form: every query runs for both callers."""

import subprocess
import sys
from pathlib import Path

from benchmarks.dead_letters import QUESTIONS

ROOT = Path(__file__).parents[2]


def test_every_query_runs_for_both_callers() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "benchmarks.dead_letters", "--letters", "2000", "--jobs", "2000"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )

    # Speed is not asserted: exit code 1 means that a bound was missed.
    assert "Traceback" not in ended.stderr, ended.stderr
    lines = [line for line in ended.stdout.splitlines() if "worst ms" in line]
    assert len(lines) == 2 * len(QUESTIONS)
