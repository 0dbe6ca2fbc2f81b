"""mypy and pyright, both strict, accept the right uses of these cases and reject the wrong ones.

A line that must be rejected ends in `# error: <pattern>`; the pattern is found in the message.
"""

import json
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import get_args

import pytest

from forge import Priority
from forge.core.job import PriorityName
from forge.core.payload_rules import CATEGORIES, Category

CASES = sorted(set(Path(__file__).parent.glob("*.py")) - {Path(__file__)})
CHECKOUT = Path(__file__).parents[2]
Place = tuple[str, int]


def test_every_file_of_cases_has_wrong_uses() -> None:
    assert {name for name, _ in _expected()} == {"results.py", "inputs.py", "options.py"}


@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_wrong_uses_are_rejected_and_right_ones_are_not(checker: str) -> None:
    expected, found = _expected(), _CHECKERS[checker]()

    accepted = {place for place, error in expected.items() if not re.search(error, found[place])}
    unexpected = {place: said for place, said in found.items() if said and place not in expected}
    assert (accepted, unexpected) == (set(), {})


def test_the_names_of_priorities_and_categories_are_those_that_exist() -> None:
    assert set(get_args(PriorityName)) == {priority.name.lower() for priority in Priority}
    assert set(get_args(Category)) == set(CATEGORIES)


def _expected() -> dict[Place, str]:
    """Return the patterns of the errors that the cases expect, by file and line."""
    marked = {
        (case.name, number): re.search(r"# error: (.+)$", line)
        for case in CASES
        for number, line in enumerate(case.read_text().splitlines(), 1)
    }
    return {place: match[1] for place, match in marked.items() if match}


def _mypy() -> dict[Place, str]:
    # With the settings of pyproject.toml, the cache of `make check` serves both.
    said = _run("mypy", "--strict", "--no-pretty", "--hide-error-context", *map(str, CASES))
    return _by_place(
        (Path(file).name, int(line), message)
        for file, line, message in re.findall(r"^(.+):(\d+): error: (.*)$", said, re.MULTILINE)
    )


def _pyright() -> dict[Place, str]:
    said = _run("pyright", "--outputjson", "--pythonpath", sys.executable)
    report = json.loads(said)
    assert report["summary"]["filesAnalyzed"] >= len(CASES)
    return _by_place(
        (Path(one["file"]).name, one["range"]["start"]["line"] + 1, one["message"])
        for one in report["generalDiagnostics"]
        if one["severity"] == "error"
    )


def _run(checker: str, *options: str) -> str:
    ended = subprocess.run(
        [sys.executable, "-m", checker, *options],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 1, ended.stdout + ended.stderr
    return ended.stdout


def _by_place(errors: Iterator[tuple[str, int, str]]) -> dict[Place, str]:
    found: dict[Place, str] = defaultdict(str)
    for file, line, message in errors:
        found[file, line] += f"{message}\n"
    return found


_CHECKERS: dict[str, Callable[[], dict[Place, str]]] = {"mypy": _mypy, "pyright": _pyright}
