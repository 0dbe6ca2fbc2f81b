"""The pages of the documentation and the blocks of code in them."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

CHECKOUT = Path(__file__).parents[2]
PAGES = [
    *(CHECKOUT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")),
    *sorted((CHECKOUT / "docs").rglob("*.md")),
]
# Short pages, whose code test_recipes.py runs in one process.
TOGETHER = [
    page
    for page in PAGES
    if page.parent.name == "cookbook" or page.name.startswith("migrate-from-")
]
# The address of this repository's files: relative links do not work on PyPI.
HOSTED = "https://github.com/forge-jobs/forge/blob/main/"
# The expected output of a line, where the page shows it: print(…)  # → this
PRINTS = re.compile(r"#\s*→\s*(.*)$")
_FENCE = re.compile(r"^```(\w*)[ ]*([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"^# (\w+\.\w+)\n")


class Block(NamedTuple):
    """A fenced code block, with its info string and its line number."""

    page: Path
    language: str
    note: str
    code: str
    line: int

    @property
    def file(self) -> str | None:
        """The file that the reader writes this into, named in the first line."""
        named = _FILE.match(self.code)
        return named[1] if named else None

    @property
    def runs(self) -> bool:
        return not self.note.startswith("no-run")

    @property
    def expected_output(self) -> list[str]:
        """The lines that the page shows as output of this block."""
        return [found[1] for line in self.code.splitlines() if (found := PRINTS.search(line))]

    @property
    def is_script(self) -> bool:
        return self.file is not None and '__name__ == "__main__"' in self.code


def blocks(page: Path, *languages: str) -> list[Block]:
    """Return the code blocks of a page, or those in these languages."""
    return [block for block in _blocks(page) if not languages or block.language in languages]


def name_of(page: Path) -> str:
    return str(page.relative_to(CHECKOUT))


def _blocks(page: Path) -> Iterator[Block]:
    text = page.read_text()
    for found in _FENCE.finditer(text):
        language, note, code = found.groups()
        yield Block(page, language, note, code, text.count("\n", 0, found.start(3)) + 1)
