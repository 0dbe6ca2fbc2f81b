"""The table of SQLSTATE classes in the documentation matches the code."""

from pathlib import Path

from forge.core.sqlstate import JUDGEMENTS, OTHERS, Verdict

PAGE = Path(__file__).parents[2] / "docs" / "why" / "delivery.md"


def test_the_page_shows_the_table_of_the_code() -> None:
    rows = [_row(f"`{state}`", each) for state, each in sorted(JUDGEMENTS.items())]

    shown = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]

    assert shown == [*rows, _row("`…`", OTHERS)]


def _row(state: str, verdict: Verdict) -> str:
    return f"| {state} | {verdict.meaning} | {verdict.blame} | {verdict.remedy} |"
