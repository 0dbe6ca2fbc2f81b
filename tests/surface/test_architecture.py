"""ARCHITECTURE.md shows the packages that exist, and a reading path that stays short."""

import ast
import re
import tomllib
from pathlib import Path

from tools.diagrams.layers import contract

from tests.surface.pages import CHECKOUT

PAGE = (CHECKOUT / "ARCHITECTURE.md").read_text()
PACKAGE = CHECKOUT / "src" / "forge"
MAX_READING_LINES = 800


def test_reading_path_has_at_most_800_lines() -> None:
    listed = PAGE.split("## Read this first")[1].split("## The tree")[0]

    entry = r"^\d+\. \[`[^`]+`\]\(([^)]+)\)(?: up to `(\w+)`)?"
    files = re.findall(entry, listed, re.MULTILINE)
    lines = sum(len(_read(file, end).splitlines()) for file, end in files)

    assert len(files) >= 6
    assert lines <= MAX_READING_LINES


def _read(file: str, end: str) -> str:
    """Return a file, up to the table of this name if there is one."""
    text = (CHECKOUT / file).read_text()
    return text.partition(f"create table {end} ")[0] if end else text


def test_tree_shows_every_package() -> None:
    shown = re.findall(r"^  (\w+)/ ", PAGE.split("## The tree")[1], re.MULTILINE)

    packages = {path.name for path in PACKAGE.iterdir() if path.is_dir()} - {"__pycache__"}
    assert set(shown) == packages


def test_top_level_has_no_module_beside_the_app() -> None:
    assert {path.name for path in PACKAGE.glob("*.py")} == {"__init__.py", "app.py"}


def test_layers_are_those_of_the_import_contract() -> None:
    (named,) = re.findall(r"!\[The layers from the top down: ([^]]+)\]", PAGE)

    assert named.split("; ") == contract()


def test_exceptions_from_the_layers_are_few_and_named() -> None:
    exceptions = _exceptions()

    assert len(exceptions) <= 8
    assert not [exception for exception in exceptions if "*" in exception]


def test_exceptions_but_app_run_are_imports_for_types_alone() -> None:
    exceptions = [exception.split(" -> ") for exception in _exceptions()]

    at_runtime = [
        (importer, imported)
        for importer, imported in exceptions
        if imported in _runtime_imports(PACKAGE.parent / f"{importer.replace('.', '/')}.py")
    ]

    assert at_runtime == [("forge.app", "forge.cli.processes.run_app")]


def _exceptions() -> list[str]:
    settings = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())
    names: list[str] = settings["tool"]["importlinter"]["contracts"][0]["ignore_imports"]
    return names


def _runtime_imports(file: Path) -> set[str | None]:
    tree = ast.parse(file.read_text())
    for_types = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    return {
        node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node not in for_types
    }
