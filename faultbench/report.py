"""The table: on the terminal, as JSON, and as Markdown for the documentation."""

import json
import os
import platform
import sys
from collections.abc import Mapping
from dataclasses import asdict, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from faultbench.outcome import Outcome, Verdict
from faultbench.postgres import DEBIAN, embedded_binaries, version
from faultbench.process import ROOT
from faultbench.registry import ROWS, FaultRow

PAGE = ROOT / "docs" / "why" / "faults.md"
BEGIN, END = "<!-- faultbench: begin -->", "<!-- faultbench: end -->"
COLUMNS = (
    "#",
    "fault",
    "runs",
    "jobs",
    "lost",
    "duplicated",
    "overlap",
    "stopped",
    "recovery",
    "time",
    "verdict",
)
LONGEST_NOTE = 300


def machine() -> dict[str, str]:
    """What the figures depend on, without names of hosts or people."""
    debian = sorted(
        folder.name for folder in DEBIAN.glob("*") if (folder / "bin/postgres").exists()
    )
    postgres = [version(embedded_binaries()), *(version(DEBIAN / name / "bin") for name in debian)]
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "cpus": str(os.cpu_count()),
        "system": f"{platform.system()} {platform.machine()}",
        "postgresql": ", ".join(postgres),
        "python": ".".join(map(str, sys.version_info[:3])),
    }


def cells(row: FaultRow, found: Outcome) -> list[str]:
    """One line of the table."""

    def count(value: int | None) -> str:
        return "–" if value is None else str(value)

    def seconds(value: float | None) -> str:
        return "–" if value is None else f"{value:.1f} s"

    runs = f"{found.runs} tests" if row.is_pytest else str(found.runs)
    return [
        str(row.number),
        row.fault,
        runs,
        count(found.jobs),
        count(found.lost),
        count(found.duplicated),
        seconds(found.overlap),
        count(found.stopped),
        seconds(found.recovery),
        seconds(found.seconds),
        str(found.verdict),
    ]


def text_table(found: Mapping[int, Outcome]) -> str:
    lines = [list(COLUMNS), *(cells(ROWS[number], found[number]) for number in sorted(found))]
    widths = [max(len(line[column]) for line in lines) for column in range(len(COLUMNS))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column in (1, 10) else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def markdown(found: Mapping[int, Outcome], seed: int, about: Mapping[str, str]) -> str:
    """Return the table with date and machine, then the notes of each row."""
    count = {verdict: sum(one.verdict is verdict for one in found.values()) for verdict in Verdict}
    lines = [
        f"Measured on {about['date']}: {about['cpus']} CPUs, {about['system']}, "
        f"PostgreSQL {about['postgresql']}, Python {about['python']}, seed {seed}. "
        f"{count[Verdict.HELD]} rows held, "
        f"{count[Verdict.FAILED]} failed, {count[Verdict.NOT_RUN]} did not run.",
        "",
        "| " + " | ".join(COLUMNS) + " |",
        "|" + "--|" * len(COLUMNS),
        *("| " + " | ".join(cells(ROWS[number], found[number])) + " |" for number in sorted(found)),
        "",
    ]
    for number in sorted(found):
        notes = [_one_line(note) for note in found[number].notes]
        lines += [f"- **{number}** ({found[number].verdict}): {note}" for note in notes]
    return "\n".join(lines) + "\n"


def as_json(found: Mapping[int, Outcome], seed: int, about: Mapping[str, str]) -> dict[str, Any]:
    rows = [
        {
            "number": number,
            "fault": ROWS[number].fault,
            "promise": ROWS[number].promise,
            "tests_of_the_suite": ROWS[number].is_pytest,
            **asdict(found[number]),
        }
        for number in sorted(found)
    ]
    return {"seed": seed, "machine": dict(about), "rows": rows}


def read(folder: Path) -> dict[int, Outcome]:
    """Read the outcomes of an earlier run."""
    written = json.loads((folder / "results.json").read_text())
    known = {field.name for field in fields(Outcome)}
    return {
        row["number"]: Outcome(
            **{name: row[name] for name in known - {"verdict"}}, verdict=Verdict(row["verdict"])
        )
        for row in written["rows"]
    }


def write(folder: Path, found: Mapping[int, Outcome], seed: int) -> None:
    """Write results.json and results.md."""
    folder.mkdir(parents=True, exist_ok=True)
    about = machine()
    (folder / "results.json").write_text(json.dumps(as_json(found, seed, about), indent=2) + "\n")
    (folder / "results.md").write_text(markdown(found, seed, about))


def write_page(found: Mapping[int, Outcome], seed: int, page: Path = PAGE) -> None:
    """Replace the table between the markers of the documentation page."""
    text = page.read_text()
    before, rest = text.split(BEGIN, 1)
    _, after = rest.split(END, 1)
    page.write_text(f"{before}{BEGIN}\n{markdown(found, seed, machine())}{END}{after}")


def _one_line(note: str) -> str:
    line = " ".join(note.split()).replace("|", "\\|").replace("<", "&lt;")
    return line if len(line) <= LONGEST_NOTE else f"{line[:LONGEST_NOTE]}…"
