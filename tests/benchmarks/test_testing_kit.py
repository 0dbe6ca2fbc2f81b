"""The benchmark of the testing kit runs, with few tests."""

from pathlib import Path

from benchmarks.testing_kit import run_suite


def test_a_suite_of_user_tests_is_measured(tmp_path: Path) -> None:
    seconds, waits = run_suite(tmp_path, tests=4, processes=2)

    assert len(waits) == 4
    assert sum(waits) < seconds * 2
