"""Builds the pages of the browser tests, once for all test processes."""

import fcntl
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from examples.export_users.build import vite_build

from tests.cli.command import FORGE
from tests.surface.pages import CHECKOUT

LAB = Path(__file__).parent / "lab"


def build_once(packages: Path, factory: pytest.TempPathFactory) -> Path:
    """Build the pages unless another process of this test run has; return what is to be served."""
    base = factory.getbasetemp()
    lab = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "lab"
    with lab.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (lab / "dist").is_dir():
            _build(lab, packages)
    return lab / "dist"


def _build(lab: Path, packages: Path) -> None:
    shutil.copytree(LAB, lab, dirs_exist_ok=True)
    generate = [FORGE, "generate", "typescript", str(lab / "src" / "lib" / "forge")]
    generate += ["--app", "tests.browser.jobs:app"]
    subprocess.run(generate, cwd=CHECKOUT, check=True, capture_output=True)
    (lab / "node_modules").symlink_to(packages)
    vite_build(lab)
