"""Follow a page from an empty folder: write its files, run its commands as printed."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

from tests.surface.pages import blocks

# They are installed here already.
SETUP = ("python -m venv", "pip install")


def run_in(folder: Path, command: str, timeout: float = 110) -> str:
    """Run a command as a new user would, without any setting of the tests; return its output."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("FORGE_", "PG", "PYTEST_"))}
    env["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{env['PATH']}"
    ended = subprocess.run(
        shlex.split(command), cwd=folder, env=env, capture_output=True, text=True, timeout=timeout
    )
    assert ended.returncode == 0, f"{command}:\n{ended.stdout}\n{ended.stderr}"
    return ended.stdout + ended.stderr


def follow(page: Path, folder: Path) -> list[str]:
    """Write the files of a page and run its commands in their order; return what they print."""
    printed = []
    for block in blocks(page, "python", "ini", "sh"):
        if block.file is not None:
            (folder / block.file).write_text(block.code)
        elif block.runs:
            commands = [c for c in block.code.splitlines() if not c.startswith(SETUP)]
            printed += [run_in(folder, command) for command in commands]
    return printed
