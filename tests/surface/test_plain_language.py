"""What people read is contemporary technical English: these words have a plainer one."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.surface.pages import CHECKOUT

FOLDERS = ("src", "tests", "tools", "examples", "benchmarks", "docs", "faultbench", "deploy")
FOLDERS += ("clients/typescript/src", "clients/typescript/test", "clients/typescript/scripts")
SUFFIXES = {
    ".py",
    ".sql",
    ".md",
    ".ts",
    ".tsx",
    ".js",
    ".svelte",
    ".html",
    ".toml",
    ".yml",
    ".json",
}
AVOIDED = re.compile(
    r"\b(?:told|whoever|whomever|somebody|anew|so many|of which|its like|taken for dead"
    r"|cannot be had|is to be done|word comes)\b",
    re.IGNORECASE,
)


def test_these_words_are_avoided() -> None:
    files = list(_files())

    found = [
        f"{file.relative_to(CHECKOUT)}:{number}: {match[0]}"
        for file in files
        for number, line in enumerate(file.read_text().splitlines(), 1)
        for match in AVOIDED.finditer(line)
    ]

    assert found == []
    assert len(files) > 1_000


@pytest.mark.parametrize(
    ("text", "is_avoided"),
    [
        ("the server is TOLD of it", True),
        ("jobs, some of which wait", True),
        ("they are retold and untold", False),
    ],
)
def test_words_are_found_as_words(text: str, is_avoided: bool) -> None:
    assert bool(AVOIDED.search(text)) == is_avoided


def _files() -> Iterator[Path]:
    """Yield the texts that people write, without installed packages and without this list."""
    yield from CHECKOUT.glob("*.md")
    for folder in FOLDERS:
        for file in sorted((CHECKOUT / folder).rglob("*")):
            is_installed = not {"node_modules", "dist", "__pycache__"}.isdisjoint(file.parts)
            if file.suffix in SUFFIXES and not is_installed and file != Path(__file__):
                yield file
