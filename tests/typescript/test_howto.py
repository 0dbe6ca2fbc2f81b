"""The code of the page on trackers compiles with the code that its commands generate."""

import re
import subprocess
from pathlib import Path

from tests.cli.command import FORGE
from tests.surface.pages import CHECKOUT, Block, blocks
from tests.typescript.project import TypeScriptProject, svelte_checked

PAGE = CHECKOUT / "docs" / "howto" / "typescript.md"
# The first line of a block: // src/export.ts, or <!-- src/Export.svelte -->
FILE = re.compile(r"^(?://|<!--) (src/[\w.]+)")


def test_the_code_of_the_page_compiles(project: TypeScriptProject) -> None:
    (jobs,) = [block for block in blocks(PAGE, "python") if block.file == "jobs.py"]
    (project.folder / "jobs.py").write_text(jobs.code)
    commands = [line for block in blocks(PAGE, "sh") for line in block.code.splitlines()]
    for command in commands:
        subprocess.run([FORGE, *command.split()[1:]], cwd=project.folder, check=True)
    written = [_write(block, project.folder) for block in blocks(PAGE, "ts", "tsx", "svelte")]

    reported = svelte_checked(project.folder)

    assert len(commands) == 2
    assert len(written) == 6
    assert reported == []


def _write(block: Block, folder: Path) -> Path:
    named = FILE.match(block.code)
    assert named is not None, f"line {block.line} of {PAGE.name} names no file"
    path = folder / named[1]
    path.write_text(block.code)
    return path
