"""The package as npm publishes it."""

import json
import tarfile
from pathlib import Path

import pytest
from tools.node import alone, run


@pytest.fixture(scope="session")
def tarball(node_packages: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file that would be published."""
    folder = tmp_path_factory.mktemp("package")
    with alone():
        ended = run("npm", "pack", "--json", "--pack-destination", folder)
    assert ended.returncode == 0, ended.stderr
    (packed,) = json.loads(ended.stdout)
    return folder / packed["filename"]


@pytest.fixture(scope="session")
def application(tarball: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an application with the package as its only dependency."""
    folder = tmp_path_factory.mktemp("application")
    modules = folder / "node_modules" / "@forge-jobs"
    with tarfile.open(tarball) as archive:
        archive.extractall(modules, filter="data")
    (modules / "package").rename(modules / "client")
    (folder / "package.json").write_text('{"type": "module"}')
    return folder
