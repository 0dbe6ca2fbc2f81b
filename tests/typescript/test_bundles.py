"""A page that imports one tracker loads that tracker's code, and the rest when it starts."""

from pathlib import Path

from examples.export_users.build import vite_build

from tests.cli.command import APPS
from tests.typescript.project import TypeScriptProject

PAGE = '<!doctype html><script type="module" src="/src/main.ts"></script>'
MAIN = "import { createNoInputJob } from './forge'; void createNoInputJob().start();"


def test_one_tracker_pulls_in_no_other_and_no_react(packages: Path, tmp_path: Path) -> None:
    project = TypeScriptProject(tmp_path / "project", packages)
    project.generate("forge", "hostile:app", APPS)
    (project.folder / "index.html").write_text(PAGE)
    (project.sources / "main.ts").write_text(MAIN)

    built = vite_build(project.folder)

    chunks = {path.name: path.read_text() for path in (built / "assets").glob("*.js")}
    (page,) = (text for name, text in chunks.items() if name.startswith("index-"))
    assert "no_input" in page
    assert "export-users" not in page
    assert not [name for name, text in chunks.items() if "useSyncExternalStore" in text]
    # The rest is loaded when a tracker starts.
    assert len(chunks) > 1
    assert "import(" in page
