"""A TypeScript project for each module of tests."""

from pathlib import Path

import pytest

from tests.typescript.project import TypeScriptProject, packages

__all__ = ["packages"]


@pytest.fixture(scope="module")
def project(packages: Path, tmp_path_factory: pytest.TempPathFactory) -> TypeScriptProject:
    return TypeScriptProject(tmp_path_factory.mktemp("project") / "project", packages)
