"""What must be clean before a commit of the client; `make check` runs this file."""

import json
import tomllib
from pathlib import Path

import pytest
from tools.node import CLIENT, run

from tests.surface.pages import CHECKOUT


@pytest.mark.parametrize("script", ["types", "lint", "sizes"])
def test_npm_script_reports_nothing(node_packages: None, script: str) -> None:
    ended = run("npm", "run", script)

    assert ended.returncode == 0, f"{ended.stdout}\n{ended.stderr}"


def test_generated_types_are_those_of_openapi_json(node_packages: None) -> None:
    ended = run("node", "scripts/api.js", "--check")

    assert ended.returncode == 0, ended.stderr


def test_package_is_well_formed(tarball: Path) -> None:
    ended = run("publint", tarball, "--strict")

    assert ended.returncode == 0, f"{ended.stdout}\n{ended.stderr}"


def test_types_of_the_package_resolve_in_every_esm_project(tarball: Path) -> None:
    ended = run("attw", tarball, "--profile", "esm-only")

    assert ended.returncode == 0, f"{ended.stdout}\n{ended.stderr}"


def test_package_contains_what_an_application_needs(application: Path) -> None:
    package = application / "node_modules" / "@forge-jobs" / "client"
    files = {path.relative_to(package).as_posix() for path in package.rglob("*") if path.is_file()}

    modules = {path.relative_to(CLIENT / "src") for path in (CLIENT / "src").rglob("*.ts")}
    built = {
        f"dist/{path.with_suffix(end).as_posix()}"
        for path in modules
        for end in (".js", ".js.map", ".d.ts")
    }
    assert files == {"package.json", "README.md", "LICENSE", *built}


def test_package_has_the_version_of_forge_and_no_dependencies() -> None:
    package = json.loads((CLIENT / "package.json").read_text())
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]

    assert package["version"] == project["version"]
    assert "dependencies" not in package
    assert package["peerDependenciesMeta"] == {"react": {"optional": True}}


def test_lock_names_exact_versions_and_no_registry() -> None:
    package = json.loads((CLIENT / "package.json").read_text())
    lock = json.loads((CLIENT / "package-lock.json").read_text())["packages"]

    pinned = package["devDependencies"].values()
    assert [version for version in pinned if not version[-1].isdigit() or "^" in version] == []
    assert [name for name, entry in lock.items() if "resolved" in entry] == []
    assert [name for name, entry in lock.items() if name and "integrity" not in entry] == []
    assert "http" not in json.dumps([entry.get("version") for entry in lock.values()])
