"""The page about tests works as printed, in an empty folder without configuration."""

from pathlib import Path

from tests.surface.empty_folder import follow, run_in
from tests.surface.pages import CHECKOUT

PAGE = CHECKOUT / "docs" / "howto" / "testing.md"


def test_the_page_leads_from_an_empty_folder_to_passing_tests(tmp_path: Path) -> None:
    (printed,) = follow(PAGE, tmp_path)

    assert "3 passed" in printed
    assert "9 passed" in run_in(tmp_path, "pytest")
    assert "Ran 1 test" in run_in(tmp_path, "python -m unittest test_cases")
    assert [folder.name for folder in (tmp_path / ".forge").iterdir()] == ["testing"]
