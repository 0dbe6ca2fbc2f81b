"""The list of faults in tests/faults/README.md: numbers, promises, scenarios and tests."""

import re
from pathlib import Path

from faultbench.registry import ROWS, FaultRow

from faultbench import rows

ROOT = Path(__file__).parent.parent
TESTS = ROOT / "tests"
# How the docstring of a test names its faults: "Fault 4", "Faults 1, 3 and 12 to 15".
NAMED = re.compile(r'^\s*(?:""")?Faults? ([\d ,andto]+)', re.MULTILINE)
SPAN = re.compile(r"(\d+) to (\d+)")
HEAD = """# Faults

Forge must survive the faults in this table. For each fault it lists:

- **#**: its number. Docstrings of tests refer to it ("Fault 4").
- **must hold**: the promise that Forge keeps when the fault occurs.
- **scenario**: the function in the fault bench (`faultbench/`, `make faults`) that injects the \
fault into real workers and servers and checks the promise from outside. Some rows run tests of \
the suite instead. [How Forge behaves under faults](../../docs/why/faults.md) has the results.
- **tests**: the test files that cover single interleavings of the fault, and the tests that the \
row runs. `make test` runs them, except those marked `slow`. A dash means that only the scenario \
covers the fault.

To add a fault, register its scenario in `faultbench/rows/`, name its number in the docstrings of \
its tests, and run `make format`, which generates this page.

| # | fault | must hold | scenario | tests |
|--|--|--|--|--|
"""


def faults_page() -> str:
    rows.register_all()
    named = files_by_fault()
    lines = [
        f"| {number} | {row.fault} | {row.promise} | {_scenario(row)} | "
        f"{_links(row, named.get(number, []))} |"
        for number, row in sorted(ROWS.items())
    ]
    return HEAD + "\n".join(lines) + "\n"


def files_by_fault() -> dict[int, list[Path]]:
    """Return the test files whose docstrings name a fault, by its number."""
    found: dict[int, list[Path]] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        numbers = {
            number for named in NAMED.findall(path.read_text()) for number in _numbers(named)
        }
        for number in numbers:
            found.setdefault(number, []).append(path)
    return found


def _scenario(row: FaultRow) -> str:
    if row.is_pytest:
        return "[`checks`](../../faultbench/rows/checks.py): tests of the suite"
    module = row.scenario.__module__.rsplit(".", 1)[1]
    return f"[`{row.scenario.__name__}`](../../faultbench/rows/{module}.py)"


def _links(row: FaultRow, named: list[Path]) -> str:
    paths = {*named, *(ROOT / test.partition("::")[0] for test in row.tests)}
    return ", ".join(map(_link, sorted(paths))) or "–"


def _numbers(text: str) -> set[int]:
    spans = [range(int(first), int(last) + 1) for first, last in SPAN.findall(text)]
    return {int(number) for number in re.findall(r"\d+", text)}.union(*spans)


def _link(path: Path) -> str:
    relative = path.relative_to(TESTS)
    name = path.stem.removeprefix("test_")
    if relative.parts[0] == "faults":
        return f"[`{name}`]({relative.relative_to('faults')})"
    return f"[`{(relative.parent / name).as_posix()}`](../{relative})"
