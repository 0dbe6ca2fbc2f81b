"""Every fault has a scenario and is listed in the documentation and the README."""

import json
import re
import subprocess
import sys
from pathlib import Path

from faultbench.outcome import Outcome, Verdict
from faultbench.process import ROOT
from faultbench.registry import ROWS
from tools.faults_page import TESTS, files_by_fault

from faultbench import report, rows

rows.register_all()
COUNT = 65


def test_every_row_has_a_scenario() -> None:
    assert sorted(ROWS) == list(range(1, COUNT + 1))


def test_the_documentation_has_a_result_for_every_row() -> None:
    listed = re.findall(r"^\| (\d+) \|", report.PAGE.read_text(), re.MULTILINE)

    assert list(map(int, listed)) == sorted(ROWS)


def test_the_tests_of_a_row_exist() -> None:
    named = re.findall(r'"(tests/[^"]+)"', (ROOT / "faultbench/rows/checks.py").read_text())

    assert named
    for name in named:
        path, _, test = name.partition("::")
        assert (ROOT / path).exists(), name
        assert not test or f"def {test}(" in (ROOT / path).read_text(), name


def test_every_fault_that_a_test_names_is_a_row() -> None:
    named = files_by_fault()

    assert {1, 13, 58} <= set(named)
    assert {number: paths for number, paths in named.items() if number not in ROWS} == {}


def test_every_mention_of_a_fault_is_on_the_page() -> None:
    listed = {path for paths in files_by_fault().values() for path in paths}

    mention = re.compile(r"\bFaults? \d")
    mentioning = [path for path in TESTS.rglob("test_*.py") if mention.search(path.read_text())]
    assert set(mentioning) == listed


def test_the_command_lists_the_rows() -> None:
    listed = subprocess.run(
        [sys.executable, "-m", "faultbench", "--list"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout

    assert ROWS[55].fault in listed


def test_the_table_replaces_the_text_between_the_markers(tmp_path: Path) -> None:
    page = tmp_path / "faults.md"
    page.write_text(f"before\n{report.BEGIN}\nold\n{report.END}\nafter\n")
    found = {3: Outcome(runs=2, jobs=14, lost=0, notes=["a <note>"], verdict=Verdict.FAILED)}

    report.write_page(found, 7, page)

    text = page.read_text()
    assert text.startswith(f"before\n{report.BEGIN}\n")
    assert text.endswith(f"{report.END}\nafter\n")
    assert "old" not in text
    assert f"| 3 | {ROWS[3].fault} | 2 | 14 | 0 |" in text
    assert "- **3** (failed): a &lt;note>" in text


def test_results_are_written_as_json_and_markdown(tmp_path: Path) -> None:
    report.write(tmp_path, {3: Outcome(runs=2, jobs=14, lost=0, overlap=0.25)}, 7)

    written = json.loads((tmp_path / "results.json").read_text())
    assert written["seed"] == 7
    assert written["rows"][0]["number"] == 3
    assert written["rows"][0]["overlap"] == 0.25
    assert "seed 7" in (tmp_path / "results.md").read_text()
