"""The page about tests works as printed, in an empty folder without configuration."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

from tests.surface.pages import CHECKOUT, blocks

PAGE = CHECKOUT / "docs" / "howto" / "testing.md"
# They are installed here already.
SETUP = ("python", "pip")


def test_the_page_leads_from_an_empty_folder_to_passing_tests(tmp_path: Path) -> None:
    env = {k: v for k, v in os.environ.items() if not k.startswith(("FORGE_", "PG", "PYTEST_"))}
    bin_folder = Path(sys.executable).parent
    env["PATH"] = f"{bin_folder}{os.pathsep}{env['PATH']}"
    ran = []

    def run(command: str) -> str:
        ended = subprocess.run(
            shlex.split(command), cwd=tmp_path, env=env, capture_output=True, text=True, timeout=110
        )
        assert ended.returncode == 0, f"{command}:\n{ended.stdout}\n{ended.stderr}"
        return ended.stdout + ended.stderr

    for block in blocks(PAGE, "python", "ini", "sh"):
        if block.file is not None:
            (tmp_path / block.file).write_text(block.code)
            continue
        commands = [c for c in block.code.splitlines() if not c.startswith(SETUP)]
        ran += map(run, commands)

    assert len(ran) == 1
    assert "3 passed" in ran[0]
    assert "9 passed" in run("pytest")
    assert "Ran 1 test" in run("python -m unittest test_cases")
    assert [folder.name for folder in (tmp_path / ".forge").iterdir()] == ["testing"]
