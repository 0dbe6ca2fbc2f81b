"""The cookbook and the migration guides run as printed: one database, one worker, one process."""

from pathlib import Path

import pytest

from tests.surface.mail_server import mail_server
from tests.surface.page_code import run_pages_together
from tests.surface.pages import TOGETHER, blocks, name_of


def test_the_recipes_run(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with mail_server() as (address, mails):
        monkeypatch.setenv("MAIL_SERVER", address)
        run_pages_together(TOGETHER, database_url, tmp_path)

    (mail,) = mails
    assert (mail["To"], mail["Subject"]) == ("ada@example.com", "Welcome")
    assert mail["Message-ID"].endswith("@example.com>")
    assert mail.get_content().strip() == "Hello Ada!"


def test_each_recipe_has_code_that_shows_what_it_prints() -> None:
    recipes = [page for page in TOGETHER if page.name != "README.md"]

    silent = [
        name_of(page)
        for page in recipes
        if not any(block.runs and block.expected_output for block in blocks(page, "python"))
    ]
    assert silent == []
    assert len(recipes) >= 11
