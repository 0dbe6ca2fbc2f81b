"""A skipped test proves nothing, and CI is where it must: there a skip is a failure."""

import os
from collections.abc import Mapping

import pytest


def judged(report: pytest.TestReport, env: Mapping[str, str] = os.environ) -> pytest.TestReport:
    """Return the report of a test; in CI one that was skipped has failed."""
    if report.skipped and env.get("CI") and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"{reason}: in CI nothing is skipped; let .ci/run install what is missing"
    return report
