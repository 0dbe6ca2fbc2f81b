"""Run the code of a page: write its files, start the worker, run the rest."""

import os
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

from tests.cli.command import Project
from tests.surface.pages import CHECKOUT, Block, blocks


def run_page_code(page: Path, url: str, folder: Path) -> None:
    """Run all code of a page against a database, with a worker for the page's app."""
    project = Project(url, folder)
    files = [block for block in blocks(page, "python", "toml") if block.file and block.runs]
    for block in files:
        with (folder / str(block.file)).open("a") as file:
            file.write(block.code)
    app = next((b.file for b in files if "app = " in b.code and "Forge" in b.code), None)
    with project.worker(app=f"{Path(app).stem}:app") if app else nullcontext():
        for script in (block for block in files if block.is_script):
            _check_script(script, _python(project, folder, str(script.file)))
        _python(project, folder, "-m", "tests.surface.run_page", str(page))


def _python(project: Project, folder: Path, *arguments: str) -> str:
    ended = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=os.environ | project.env | {"PYTHONPATH": str(CHECKOUT)},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert ended.returncode == 0, f"{ended.stdout}\n{ended.stderr}"
    return ended.stdout


def _check_script(script: Block, printed: str) -> None:
    missing = [line for line in script.expected_output if line not in printed.splitlines()]
    assert not missing, f"{script.file} does not print {missing}, but:\n{printed}"
