"""The TypeScript compiler accepts what is generated, and rejects what Forge would reject."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import APPS
from tests.typescript.project import TypeScriptProject, compiled

# Settings of apps: less strict than those of the example, and stricter.
LOOSE = {"strict": False, "exactOptionalPropertyTypes": False, "noUncheckedIndexedAccess": False}
PEDANTIC = {
    "allowUnreachableCode": False,
    "noImplicitOverride": True,
    "noImplicitReturns": True,
    "noPropertyAccessFromIndexSignature": True,
    "noUnusedParameters": True,
    "erasableSyntaxOnly": True,
    "isolatedDeclarations": True,
    "declaration": True,
}
# It imports the generated code, and marks each line that must be an error.
USAGE = Path(__file__).with_name("usage.ts")


@pytest.fixture(scope="module", name="hostile")
def hostile_fixture(project: TypeScriptProject) -> TypeScriptProject:
    """A project with the code of an app of hostile names and types."""
    project.generate("forge", "hostile:app", APPS)
    shutil.copy(USAGE, project.sources)
    return project


def test_the_code_of_a_hostile_app_compiles_and_has_the_expected_types(
    hostile: TypeScriptProject,
) -> None:
    generated = (hostile.sources / "forge" / "index.ts").read_text()

    assert generated.count("\nexport function create") == 300
    assert USAGE.read_text().count("@ts-expect-error") > 10
    assert compiled(hostile.folder) == []


def test_a_wrong_type_is_reported(hostile: TypeScriptProject) -> None:
    wrong = hostile.sources / "wrong.ts"
    wrong.write_text("import { type Options } from './forge';\nexport const o: Options = {};\n")

    reported = compiled(hostile.folder)

    wrong.unlink()
    assert len(reported) == 1
    assert "Property 'depth' is missing" in reported[0]


@pytest.mark.parametrize("settings", [LOOSE, PEDANTIC], ids=["loose", "pedantic"])
def test_the_code_compiles_with_the_settings_of_any_app(
    packages: Path, tmp_path: Path, settings: dict[str, Any]
) -> None:
    project = TypeScriptProject(tmp_path / "project", packages)
    project.generate("forge", "shop:app", APPS)
    project.set_options(settings)

    assert compiled(project.folder) == []
