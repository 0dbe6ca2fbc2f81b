"""The getting-started pages work as printed, in an empty folder without configuration."""

import os
from pathlib import Path

import pytest

from tests.surface.page_reader import PageReader
from tests.surface.pages import CHECKOUT, name_of

PAGES = [CHECKOUT / "README.md", CHECKOUT / "docs" / "tutorial" / "README.md"]


@pytest.fixture(autouse=True)
def _nothing_is_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(("FORGE_", "PG")):
            monkeypatch.delenv(name)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_page_works_without_configuration(page: Path, tmp_path: Path) -> None:
    with PageReader(page, tmp_path) as reader:
        reader.follow()

    assert (tmp_path / ".forge").is_dir()
