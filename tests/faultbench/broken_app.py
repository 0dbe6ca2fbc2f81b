"""The bench's app for `forge worker`, on an engine that FAULTBENCH_BROKEN breaks."""

import os

from faultbench.apps.jobs import app

from tests.faults.apps.broken import BROKEN

BROKEN[os.environ["FAULTBENCH_BROKEN"]]()

__all__ = ["app"]
