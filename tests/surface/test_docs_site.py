"""The documentation site has every page and public name, and loads nothing from elsewhere."""

import re
import shutil
from pathlib import Path

import pytest
from tools import docs_site

import forge
from tests.surface.pages import CHECKOUT


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    pages = docs_site.prepare(folder)
    (folder / "site").mkdir()
    docs_site.write_llms_files(folder / "site", pages)
    return folder


def test_every_page_is_in_the_navigation_and_in_llms_txt(prepared: Path) -> None:
    pages = [path.relative_to(CHECKOUT / "docs") for path in (CHECKOUT / "docs").rglob("*.md")]
    navigation = (prepared / "mkdocs.yml").read_text()
    listed = (prepared / "site" / "llms.txt").read_text()

    assert [page for page in map(str, pages) if page not in navigation] == []
    assert listed.count("](https://") == len(pages) + 1  # and the page of the Python API
    assert "](https://forge-jobs.github.io/forge/howto/deploy/)" in listed


@pytest.mark.parametrize("folder", docs_site.SECTIONS)
def test_index_of_a_folder_lists_each_of_its_pages(folder: str) -> None:
    index = (docs_site.DOCS / folder / "README.md").read_text()

    pages = {page.name for page in (docs_site.DOCS / folder).glob("*.md")} - {"README.md"}
    assert pages <= set(re.findall(r"\]\(([\w-]+\.md)", index))


def test_start_page_shows_the_example_of_the_readme(prepared: Path) -> None:
    start = (prepared / "docs" / "index.md").read_text()

    assert "async def export_users(ctx: JobContext, input: Export)" in start
    assert "README:" not in start


def test_every_public_name_is_on_the_page_of_the_api(prepared: Path) -> None:
    named = re.findall(r"^::: forge\.(\w+)$", (prepared / docs_site.API_FILE).read_text(), re.M)

    assert set(named) == {name for name in forge.__all__ if not name.startswith("__")}


def test_links_out_of_the_docs_lead_to_files_of_the_repository(
    prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [path.read_text() for path in (prepared / "docs").rglob("*.md")]
    shutil.copytree(CHECKOUT / "docs", tmp_path / "docs")
    with (tmp_path / "docs" / "why" / "speed.md").open("a") as page:
        page.write("[gone](../../src/forge/gone.py)")
    monkeypatch.setattr(docs_site, "DOCS", tmp_path / "docs")

    assert any("](https://github.com/forge-jobs/forge/blob/main/examples/" in t for t in texts)
    assert not any("](../../" in text for text in texts)
    with pytest.raises(ValueError, match=r"docs/why links to src/forge/gone\.py"):
        docs_site.prepare(tmp_path / "again")
