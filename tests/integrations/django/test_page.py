"""The page on Django, from an empty folder to a passing test."""

from pathlib import Path

import pytest

from tests.integrations.django.page import postgres_variables, walk


@pytest.mark.timeout(300)
def test_the_page_leads_to_a_passing_test(
    empty_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in postgres_variables(empty_url).items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("DJANGO_SETTINGS_MODULE", raising=False)

    printed = walk(tmp_path, is_newest=False)

    assert "Ran 1 test" in printed
    assert "\nOK\n" in printed
    assert "no issues (0 silenced)" in printed
