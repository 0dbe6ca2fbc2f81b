"""The pages about frameworks lead from an empty folder to passing tests."""

from pathlib import Path

from tests.surface.empty_folder import follow
from tests.surface.pages import CHECKOUT


def test_the_page_about_fastapi_leads_to_passing_tests(tmp_path: Path) -> None:
    (printed,) = follow(CHECKOUT / "docs" / "howto" / "fastapi.md", tmp_path)

    assert "3 passed" in printed
    assert [folder.name for folder in (tmp_path / ".forge").iterdir()] == ["testing"]
