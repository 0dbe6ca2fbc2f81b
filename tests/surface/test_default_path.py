"""What a newcomer types, in an empty folder and with no variable set: it works as printed."""

import os
from pathlib import Path

import pytest

from tests.surface.following import Reader
from tests.surface.pages import CHECKOUT, name_of

PAGES = [CHECKOUT / "README.md", CHECKOUT / "docs" / "tutorial" / "README.md"]


@pytest.fixture(autouse=True)
def _nothing_is_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(("FORGE_", "PG")):
            monkeypatch.delenv(name)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_page_can_be_followed_with_nothing_configured(page: Path, tmp_path: Path) -> None:
    with Reader(page, tmp_path) as reader:
        reader.follow()

    assert (tmp_path / ".forge").is_dir()
