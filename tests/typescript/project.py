"""A TypeScript project of the tests, with the packages and the settings of the example."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from examples.export_users.build import FRONTEND
from tools.node import PackagesMissing, install, run

from tests.cli.command import FORGE


@pytest.fixture(scope="session")
def packages() -> Path:
    """The npm packages of the example: TypeScript, Svelte, React and Vite."""
    try:
        install(FRONTEND)
    except PackagesMissing as missing:
        pytest.skip(str(missing))
    return FRONTEND / "node_modules"


class TypeScriptProject:
    """A folder with sources, checked as strictly as the compiler can."""

    def __init__(self, folder: Path, packages: Path) -> None:
        self.sources = folder / "src"
        self.folder = folder
        self.sources.mkdir(parents=True)
        (folder / "node_modules").symlink_to(packages)
        self.set_options({})

    def set_options(self, options: dict[str, Any]) -> None:
        """Replace options of the compiler."""
        settings = json.loads((FRONTEND / "tsconfig.json").read_text())
        settings["compilerOptions"] |= options
        (self.folder / "tsconfig.json").write_text(json.dumps(settings))

    def generate(self, into: str, app: str, cwd: Path) -> None:
        """Generate the code of an app into a folder of the sources."""
        command = [FORGE, "generate", "typescript", str(self.sources / into), "--app", app]
        subprocess.run(command, cwd=cwd, check=True, capture_output=True)


def compiled(folder: Path) -> list[str]:
    """Compile the TypeScript of a project; return the errors."""
    return run("tsc", "--pretty", "false", folder=folder).stdout.splitlines()


def svelte_checked(folder: Path) -> list[str]:
    """Compile the TypeScript and the components of a project; return the errors and warnings."""
    options = ("--fail-on-warnings", "--output", "machine-verbose")
    ended = run("svelte-check", *options, folder=folder)
    found = [line for line in ended.stdout.splitlines() if '{"type":' in line]
    assert found or ended.returncode == 0, ended.stdout + ended.stderr
    return found
