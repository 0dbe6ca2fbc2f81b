"""Build the documentation site from docs/: `python -m tools.docs_site [FOLDER]`."""

import posixpath
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

import forge

CHECKOUT = Path(__file__).resolve().parents[1]
DOCS = CHECKOUT / "docs"
SETTINGS = Path(__file__).with_suffix(".yml")
STYLE = Path(__file__).with_suffix(".css")
HOSTED = "https://github.com/forge-jobs/forge/blob/main/"
# The first line of a code block also says how the tests treat it: ```sh no-run: why
FENCE = re.compile(r"^(\s*```\w+) [^\n`]+$", re.MULTILINE)
LINK = re.compile(r"(\]\()(?!https?:|#|mailto:)([^)\s#]+)(#[^)\s]*)?\)")
# In the README.md of a folder: the heading of a group, and a page of the folder.
GROUP = re.compile(r"^## (.+)$", re.MULTILINE)
PAGE = re.compile(r"\]\((\w[\w-]*\.md)")
# Where a page shows a section of the README.
SECTION = re.compile(r"^<!-- README: (.+) -->$", re.MULTILINE)
SECTIONS = {
    "tutorial": "Tutorial",
    "howto": "How-to",
    "cookbook": "Cookbook",
    "reference": "Reference",
    "why": "Why",
    "decisions": "Decisions",
}
API = "reference/api.md"
API_FILE = f"docs/{API}"


def main() -> int:
    """Build the site; a broken link, a missing anchor or any other warning is an error."""
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "site").resolve()
    with tempfile.TemporaryDirectory() as folder:
        prepared = Path(folder)
        pages = prepare(prepared)
        build = [sys.executable, "-m", "zensical", "build", "--strict"]
        status = subprocess.run(build, cwd=prepared, check=False).returncode
        if status == 0:
            write_llms_files(prepared / "site", pages)
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree(prepared / "site", target)
            print(f"{len(pages)} pages are in {target}")
    return status


def prepare(folder: Path) -> Mapping[str, str]:
    """Write what Zensical builds, and return the text of each page in the order of the site."""
    shutil.copytree(DOCS, folder / "docs")
    shutil.copy(STYLE, folder / "docs" / STYLE.name)
    navigation = _navigation()
    pages = {source: _page(source) for source in _sources(navigation)}
    for source, text in pages.items():
        (folder / "docs" / source).write_text(text)
    settings = yaml.safe_load(SETTINGS.read_text())
    settings["plugins"]["mkdocstrings"]["handlers"]["python"]["paths"] = [str(CHECKOUT / "src")]
    (folder / "mkdocs.yml").write_text(yaml.safe_dump(settings | {"nav": navigation}))
    return pages


def write_llms_files(site: Path, pages: Mapping[str, str]) -> None:
    """Write llms.txt, the list of all pages, and llms-full.txt, their text."""
    settings = yaml.safe_load(SETTINGS.read_text())
    base = settings["site_url"]
    listed = [f"# {settings['site_name']}", "", f"> {settings['site_description']}", ""]
    listed += [f"- [{_title(text)}]({base}{_address(name)})" for name, text in pages.items()]
    texts = [f"<!-- {base}{_address(name)} -->\n\n{text.strip()}\n" for name, text in pages.items()]
    (site / "llms.txt").write_text("\n".join(listed) + "\n")
    (site / "llms-full.txt").write_text("\n".join(texts))


def _navigation() -> list[dict[str, Any]]:
    """Return the sections; the pages of each in the order in which its README.md lists them."""
    sections = [{title: _entries(folder)} for folder, title in SECTIONS.items()]
    return [{"Start": "index.md"}, *sections, {"Glossary": "glossary.md"}]


def _entries(folder: str) -> list[Any]:
    """Return the pages of a section, in groups where its README.md has headings."""
    first, *groups = GROUP.split((DOCS / folder / "README.md").read_text())
    entries: list[Any] = [f"{folder}/README.md", *_listed(folder, first)]
    for title, text in zip(groups[::2], groups[1::2], strict=True):
        if pages := _listed(folder, text):
            entries.append({title: pages})
    return [*entries, API] if folder == "reference" else entries


def _listed(folder: str, text: str) -> list[str]:
    return [f"{folder}/{name}" for name in dict.fromkeys(PAGE.findall(text))]


def _sources(entry: Any) -> list[str]:
    """Return all pages below an entry of the navigation, in their order."""
    if isinstance(entry, str):
        return [entry]
    below = entry.values() if isinstance(entry, dict) else entry
    return [page for each in below for page in _sources(each)]


def _page(source: str) -> str:
    """Return a page as GitHub shows it: links out of docs/ lead to the repository."""
    if source == API:
        return _api_page()
    text = SECTION.sub(lambda found: _section(found[1]), (DOCS / source).read_text())
    text = FENCE.sub(r"\1", text)
    return LINK.sub(lambda found: _link(found, posixpath.dirname(source)), text)


def _api_page() -> str:
    """Return the page of the public names, whose text comes from their docstrings."""
    names = [name for name in forge.__all__ if not name.startswith("__")]
    entries = "".join(f"\n::: forge.{name}\n" for name in sorted(names, key=str.lower))
    return f"# Python API\n\nThe public names of `forge`, from their docstrings.\n{entries}"


def _section(title: str) -> str:
    readme = (CHECKOUT / "README.md").read_text()
    found = re.search(rf"^## {re.escape(title)}\n(.+?)(?=^## )", readme, re.MULTILINE | re.DOTALL)
    if found is None:
        raise ValueError(f"README.md has no section {title!r}")
    return found[1].replace(f"{HOSTED}docs/", "").strip()


def _link(found: re.Match[str], folder: str) -> str:
    target, anchor = found[2], found[3] or ""
    place = posixpath.normpath(posixpath.join("docs", folder, target))
    if place.startswith("docs/"):
        return found[0]
    if not (CHECKOUT / place).exists():
        raise ValueError(f"docs/{folder} links to {place}, which does not exist")
    return f"{found[1]}{HOSTED}{place}{anchor})"


def _title(text: str) -> str:
    found = re.search(r"^# (.+)$", text, re.MULTILINE)
    if found is None:
        raise ValueError(f"a page has no title: {text[:40]!r}")
    return found[1]


def _address(source: str) -> str:
    """Return the address of a page below that of the site."""
    folder, _, name = source.rpartition("/")
    stem = "" if name in ("index.md", "README.md") else name.removesuffix(".md")
    return "".join(f"{part}/" for part in (folder, stem) if part)


if __name__ == "__main__":
    sys.exit(main())
