"""Does what docs/howto/django.md says: writes its files and runs its commands in a folder.

`python -m tests.integrations.django.page FOLDER URL [--newest]`; `--newest` adds what needs Django
6.1.
"""

import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from tests.surface.pages import CHECKOUT, Block, blocks

PAGE = CHECKOUT / "docs" / "howto" / "django.md"
MARK = "no-run: tests/integrations/django/test_page.py runs this page"
NEWEST = f"{MARK} on Django 6.1"
FILE = re.compile(r"# (at the end of )?([\w/.]+)\n")


def walk(folder: Path, *, is_newest: bool) -> str:
    """Follow the page in an empty folder, and return what its commands printed."""
    printed = ""
    for block in blocks(PAGE, "sh", "python"):
        if block.note == MARK:
            printed += _follow(block, folder)
    printed += _run('python -c "import shop.asgi"', folder)
    if is_newest:
        for block in blocks(PAGE, "python"):
            if block.note == NEWEST:
                _follow(block, folder)
        printed += _run("python manage.py test", folder)
    return printed


def _follow(block: Block, folder: Path) -> str:
    if block.language == "sh":
        return _run(block.code, folder)
    named = FILE.match(block.code)
    assert named, block
    path = folder / named[2]
    before = path.read_text() if named[1] else ""
    path.write_text(before + block.code.partition("\n")[2])
    return ""


def _run(script: str, folder: Path) -> str:
    """Run the commands of a block with this interpreter's folder first on the path."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    ended = subprocess.run(
        ["bash", "-euc", script],
        cwd=folder,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ended.returncode == 0, f"{script}\n{ended.stdout}{ended.stderr}"
    return ended.stdout + ended.stderr


def postgres_variables(url: str) -> dict[str, str]:
    """Return the variables that the settings of the page read."""
    address = urlsplit(url)
    place = parse_qs(address.query)
    return {
        "PGDATABASE": address.path[1:],
        "PGUSER": address.username or "",
        "PGHOST": place["host"][0],
        "PGPORT": place["port"][0],
    }


if __name__ == "__main__":
    folder, url, *options = sys.argv[1:]
    os.environ.update(postgres_variables(url))
    print(walk(Path(folder), is_newest="--newest" in options))
