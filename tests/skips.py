"""In CI a skipped test is a failure, because there every test must run."""

import os
from collections.abc import Mapping

import pytest


def judged(report: pytest.TestReport, env: Mapping[str, str] = os.environ) -> pytest.TestReport:
    """Return the report of a test; in CI a skipped test becomes a failed one."""
    if report.skipped and env.get("CI") and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"{reason}: in CI nothing is skipped; let .ci/run install what is missing"
    return report
