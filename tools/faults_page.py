"""The list of faults in tests/faults/README.md: numbers, promises, scenarios and tests."""

import re
from pathlib import Path

from faultbench.registry import ROWS, FaultRow

from faultbench import rows

TESTS = Path(__file__).parent.parent / "tests"
# "Fault 4", "Faults 1, 3 and 12 to 15": how a test's docstring names what it shows.
NAMED = re.compile(r'"""Faults? ([\d ,andto]+)')
SPAN = re.compile(r"(\d+) to (\d+)")
HEAD = """# Faults

What Forge has to survive. Each fault has a number, a promise, and a scenario in the \
[fault bench](../../docs/why/faults.md) (`faultbench/`, `make faults`), which runs it against real \
servers and processes from outside the engine. The tests in this folder and elsewhere show single \
interleavings of the same faults; their docstrings name the number ("Fault 4").

`make format` writes this page from the scenarios and from those docstrings.

| # | fault | must hold | scenario | tests |
|--|--|--|--|--|
"""


def faults_page() -> str:
    rows.register_all()
    tests = _tests_by_number()
    lines = [
        f"| {number} | {row.fault} | {row.promise} | {_scenario(row)} | "
        f"{', '.join(tests.get(number, ['–']))} |"
        for number, row in sorted(ROWS.items())
    ]
    return HEAD + "\n".join(lines) + "\n"


def _scenario(row: FaultRow) -> str:
    if row.is_pytest:
        return "[`checks`](../../faultbench/rows/checks.py): tests of the suite"
    module = row.scenario.__module__.rsplit(".", 1)[1]
    return f"[`{row.scenario.__name__}`](../../faultbench/rows/{module}.py)"


def _tests_by_number() -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        numbers = {
            number for named in NAMED.findall(path.read_text()) for number in _numbers(named)
        }
        for number in numbers:
            found.setdefault(number, []).append(_link(path))
    return found


def _numbers(text: str) -> set[int]:
    spans = [range(int(first), int(last) + 1) for first, last in SPAN.findall(text)]
    return {int(number) for number in re.findall(r"\d+", text)}.union(*spans)


def _link(path: Path) -> str:
    place = path.relative_to(TESTS)
    target = path.name if place.parts[0] == "faults" else f"../{place}"
    return f"[`{path.stem.removeprefix('test_')}`]({target})"
