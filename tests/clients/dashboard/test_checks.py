"""What must be clean before a commit of the dashboard; `make check` runs this file."""

import json

import pytest
from tools.dashboard import BUILT, DASHBOARD
from tools.node import CLIENT, PackagesMissing, install, run

from forge.http.dashboard.files import assets

# Compressed bytes of the page, its scripts and its styles, without the charts.
MAX_BUNDLE = 120_000


@pytest.fixture(scope="session")
def dashboard_packages() -> None:
    """Install the npm packages of dashboard/; without a registry, the test is skipped."""
    try:
        install(DASHBOARD)
    except PackagesMissing as missing:
        pytest.skip(str(missing))


@pytest.mark.parametrize("script", ["types", "lint", "test"])
def test_npm_script_reports_nothing(dashboard_packages: None, script: str) -> None:
    ended = run("npm", "run", script, folder=DASHBOARD)

    assert ended.returncode == 0, f"{ended.stdout}\n{ended.stderr}"


def test_bundle_is_small() -> None:
    sizes = {name: len(found.compressed or found.body) for name, found in assets().items()}

    loaded = sum(size for name, size in sizes.items() if not name.startswith("chart"))
    assert loaded <= MAX_BUNDLE, sizes


def test_built_files_name_no_other_host() -> None:
    for path in BUILT.rglob("*"):
        # The licenses of bundled packages name their projects; the server does not serve them.
        if path.is_file() and path.name != "licenses.md":
            named = path.read_text("utf-8").split("http")[1:]
            hosts = {rest[:30] for rest in named if rest.startswith(("://", "s://"))}
            allowed = ("://www.w3.org/", "s://svelte.dev/e/")
            assert [host for host in hosts if not host.startswith(allowed)] == [], path.name


def test_lock_names_exact_versions_and_no_registry() -> None:
    package = json.loads((DASHBOARD / "package.json").read_text())
    lock = json.loads((DASHBOARD / "package-lock.json").read_text())["packages"]

    pinned = {**package["dependencies"], **package["devDependencies"]}
    assert [
        version for version in pinned.values() if not version[-1].isdigit() or "^" in version
    ] == []
    assert [name for name, entry in lock.items() if "resolved" in entry] == []
    assert [name for name, entry in lock.items() if name and "integrity" not in entry] == []


def test_shared_tools_have_the_versions_of_the_client() -> None:
    versions = json.loads((CLIENT / "package.json").read_text())["devDependencies"]
    own = json.loads((DASHBOARD / "package.json").read_text())["devDependencies"]

    assert {name: own[name] for name in own.keys() & versions} == {
        name: versions[name] for name in own.keys() & versions
    }
