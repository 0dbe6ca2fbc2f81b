"""Run the code of pages: write their files, start the worker, run the rest."""

import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

from tests.cli.command import FORGE, Project
from tests.surface.pages import CHECKOUT, Block, blocks

# As in the reader's virtual environment.
ACTIVATED = f"{FORGE.parent}{os.pathsep}{os.environ['PATH']}"
# A worker for the apps of several pages: its app has the definitions of all of them.
TOGETHER = """
from importlib import import_module

from forge import Forge

app = Forge()
for module in {modules}:
    own = import_module(module).app
    for definitions in (own.definitions, own.schedule_definitions, own.calls):
        app.register(*definitions.values())
"""


def run_page_code(page: Path, url: str, folder: Path) -> None:
    """Run all code of a page against a database, with a worker for the page's app."""
    project = Project(url, folder)
    files = write_files(page, folder)
    app = _app_of(files)
    with project.worker(app=f"{app}:app") if app else nullcontext():
        for script in (block for block in files if block.is_script):
            _check_script(script, _python(project, folder, str(script.file)))
        _python(project, folder, "-m", "tests.surface.run_page", str(page))


def run_pages_together(pages: Sequence[Path], url: str, folder: Path) -> None:
    """Run the code of several pages in one process, with one worker for the apps of all."""
    project = Project(url, folder)
    files = [write_files(page, folder) for page in pages]
    names = [block.file for written in files for block in {b.file: b for b in written}.values()]
    assert len(names) == len(set(names)), f"two pages write the same file: {sorted(names)}"
    modules = [app for written in files if (app := _app_of(written)) is not None]
    (folder / "together.py").write_text(TOGETHER.format(modules=modules))
    with project.worker(app="together:app"):
        _python(project, folder, "-m", "tests.surface.run_page", *map(str, pages))


def write_files(page: Path, folder: Path) -> list[Block]:
    """Write the files of a page, and return their blocks."""
    files = [block for block in blocks(page, "python", "toml") if block.file and block.runs]
    for block in files:
        with (folder / str(block.file)).open("a") as file:
            file.write(block.code)
    return files


def _app_of(files: Sequence[Block]) -> str | None:
    """Return the module of the app that a page makes, if it makes one."""
    apps = (b.file for b in files if b.file and "app = " in b.code and "Forge" in b.code)
    return next((Path(file).stem for file in apps), None)


def _python(project: Project, folder: Path, *arguments: str) -> str:
    ended = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=os.environ | project.env | {"PYTHONPATH": str(CHECKOUT), "PATH": ACTIVATED},
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
