"""Runs `manage.py` of the project beside this file."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

# Django's own runner runs these.
collect_ignore = ["project"]
PROJECT = Path(__file__).parent / "project"
Manage = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def manage(empty_url: str) -> Manage:
    """Run a command of the project on an empty database; raise unless it exits with 0."""

    def run(*arguments: str, check: bool = True, **env: str) -> "subprocess.CompletedProcess[str]":
        ended = subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=PROJECT,
            env={**environment(empty_url), **env},
            capture_output=True,
            text=True,
            timeout=240,
        )
        if check and ended.returncode:
            pytest.fail(f"manage.py {' '.join(arguments)}:\n{ended.stdout}{ended.stderr}")
        return ended

    return run


def environment(database_url: str) -> dict[str, str]:
    """Return the variables that the project needs."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("FORGE_")}
    return own | {"SHOP_DATABASE": database_url, "DJANGO_SETTINGS_MODULE": "shop.settings"}
