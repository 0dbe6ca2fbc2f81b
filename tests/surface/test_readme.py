"""The README and the docs: code runs, commands exist, and links resolve."""

import re
import shlex
import tomllib
from pathlib import Path

import click
import pytest

from forge import Config
from forge.cli.main import forge, run
from tests.surface.page_code import run_page_code
from tests.surface.pages import CHECKOUT, HOSTED, PAGES, TOGETHER, Block, blocks, name_of

MAX_NOT_RUN = 4
# The test that runs a block that the other pages' runner cannot.
OWN_TEST = re.compile(r"no-run: (tests/\S+\.py) runs this page")
# `forge …` in text, and lines that begin with it in code blocks.
IN_TEXT = re.compile(r"`forge ([^`\n]+)`")
IN_BLOCK = re.compile(r"^(?:\$ )?(?:\S+=\S+ )*(?:\.venv/bin/)?forge ([^#\n]+)", re.MULTILINE)


def pages_with_code() -> list[Path]:
    alone = (page for page in PAGES if page not in TOGETHER)
    return [page for page in alone if any(b.runs for b in blocks(page, "python", "sql"))]


def commands() -> list[str]:
    found = set()
    for page in PAGES:
        text = page.read_text()
        found |= {command.strip() for command in IN_TEXT.findall(text)}
        for block in blocks(page, "sh", "ini", "yaml"):
            found |= {command.strip() for command in IN_BLOCK.findall(block.code)}
    return sorted(found)


@pytest.mark.parametrize("page", pages_with_code(), ids=name_of)
def test_the_code_of_a_page_runs(page: Path, database_url: str, tmp_path: Path) -> None:
    run_page_code(page, database_url, tmp_path)


def test_the_readme_and_the_tutorial_are_among_the_pages_that_run() -> None:
    names = set(map(name_of, pages_with_code()))

    assert {"README.md", "docs/tutorial/README.md"} <= names


def test_code_that_is_not_run_is_rare_and_has_a_reason() -> None:
    skipped = [b for page in PAGES for b in blocks(page, "python", "sql") if not b.runs]

    run_elsewhere = [found[1] for block in skipped if (found := OWN_TEST.match(block.note))]
    assert len(skipped) - len(run_elsewhere) <= MAX_NOT_RUN
    assert all((CHECKOUT / path).is_file() for path in run_elsewhere)
    assert all(re.fullmatch(r"no-run: .{10,}", block.note) for block in skipped)


@pytest.mark.parametrize("command", commands())
def test_a_documented_command_exists_with_its_options(command: str) -> None:
    words = shlex.split(command.replace("…", ""))
    found: click.Command = forge
    path: list[str] = []
    while isinstance(found, click.Group) and words and not words[0].startswith("-"):
        inner = found.get_command(click.Context(found), words[0])
        assert inner is not None, f"there is no `forge {' '.join([*path, words[0]])}`"
        found = inner
        path.append(words.pop(0))

    assert run([*path, "--help"]) == 0
    known = {flag for parameter in found.params for flag in (*parameter.opts, "--help")}
    assert {word.split("=")[0] for word in words if word.startswith("--")} <= known


def test_documented_commands_are_found() -> None:
    assert len(commands()) > 20


def test_make_targets_exist() -> None:
    rules = set(re.findall(r"^(\w+):", (CHECKOUT / "Makefile").read_text(), re.MULTILINE))
    mentioned = re.findall(r"(?:^|`)make (\w+)", _all_text(), re.MULTILINE)

    assert {"run", "test"} <= set(mentioned) <= rules


def test_documented_extras_exist() -> None:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    mentioned = re.findall(r"forge-jobs\[([\w,]+)\]", _all_text())

    assert mentioned
    assert {extra for extras in mentioned for extra in extras.split(",")} <= set(
        project["optional-dependencies"]
    )


@pytest.mark.parametrize(
    "block", [b for page in PAGES for b in blocks(page, "toml")], ids=lambda b: name_of(b.page)
)
def test_documented_settings_are_accepted(block: Block, tmp_path: Path) -> None:
    file = tmp_path / "forge.toml"
    file.write_text(block.code)

    assert tomllib.loads(file.read_text())
    Config.load(file, {})


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_resolve(page: Path) -> None:
    for target in links(page):
        if "://" in target and not target.startswith(HOSTED):
            continue
        path, _, anchor = target.removeprefix(HOSTED).partition("#")
        folder = CHECKOUT if target.startswith(HOSTED) else page.parent
        found = (folder / path).resolve() if path else page
        assert found.exists(), f"{target} leads nowhere"
        assert CHECKOUT in found.parents
        assert not anchor or anchor in _anchors(found), f"{target} names no heading"


def links(page: Path) -> list[str]:
    return re.findall(r"\]\(([^)\s]+)\)", page.read_text())


def _anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def _all_text() -> str:
    return "\n".join(page.read_text() for page in PAGES)
