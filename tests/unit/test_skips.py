"""In CI every test runs: what would be skipped elsewhere fails there."""

import pytest

from tests.skips import judged


def skipped() -> pytest.TestReport:
    longrepr = ("test_x.py", 7, "Skipped: node is not installed")
    return pytest.TestReport("test_x", ("test_x.py", 7, "x"), {}, "skipped", longrepr, "setup")


def test_a_skip_is_a_failure_in_ci_that_says_what_is_missing() -> None:
    report = judged(skipped(), {"CI": "true"})

    assert report.failed
    assert "node is not installed: in CI nothing is skipped" in str(report.longrepr)


def test_a_skip_stays_one_elsewhere() -> None:
    assert judged(skipped(), {}).skipped
    assert judged(skipped(), {"CI": ""}).skipped
