"""In CI a skipped test fails; elsewhere it stays skipped."""

import pytest

from tests.skips import judged


def skipped() -> pytest.TestReport:
    longrepr = ("test_x.py", 7, "Skipped: node is not installed")
    return pytest.TestReport("test_x", ("test_x.py", 7, "x"), {}, "skipped", longrepr, "setup")


def test_a_skip_in_ci_is_a_failure_with_its_reason() -> None:
    report = judged(skipped(), {"CI": "true"})

    assert report.failed
    assert "node is not installed: in CI nothing is skipped" in str(report.longrepr)


def test_a_skip_outside_ci_stays_a_skip() -> None:
    assert judged(skipped(), {}).skipped
    assert judged(skipped(), {"CI": ""}).skipped
