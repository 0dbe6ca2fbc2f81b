"""The table of whose fault an error is, as the documentation shows it."""

from pathlib import Path

from forge.core.sqlstate import JUDGEMENTS, OTHERS, Judgement

PAGE = Path(__file__).parents[2] / "docs" / "why" / "delivery.md"


def test_the_page_shows_the_table_that_the_code_uses() -> None:
    rows = [_row(f"`{state}`", each) for state, each in sorted(JUDGEMENTS.items())]

    shown = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]

    assert shown == [*rows, _row("`…`", OTHERS)]


def _row(state: str, judgement: Judgement) -> str:
    return f"| {state} | {judgement.meaning} | {judgement.blame} | {judgement.remedy} |"
