"""The client's source as `forge generate typescript` copies it into an application."""

import json
import shutil
from pathlib import Path

import pytest
from tools.node import CLIENT, run

# The strictest options that applications have.
STRICT = {
    "target": "ES2022",
    "lib": ["ES2022", "DOM", "DOM.Iterable"],
    "strict": True,
    "exactOptionalPropertyTypes": True,
    "noUncheckedIndexedAccess": True,
    "noPropertyAccessFromIndexSignature": True,
    "noImplicitReturns": True,
    "noImplicitOverride": True,
    "noUnusedLocals": True,
    "noUnusedParameters": True,
    "verbatimModuleSyntax": True,
    "erasableSyntaxOnly": True,
    "isolatedModules": True,
    "noEmit": True,
    "types": [],
}


@pytest.mark.parametrize(
    ("module", "resolution"), [("ESNext", "bundler"), ("NodeNext", "NodeNext")]
)
def test_source_compiles_in_an_application_without_react(
    node_packages: None, tmp_path: Path, module: str, resolution: str
) -> None:
    shutil.copytree(CLIENT / "src", tmp_path / "client")
    options = STRICT | {"module": module, "moduleResolution": resolution}
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "tsconfig.json").write_text(json.dumps({"compilerOptions": options}))

    ended = run("tsc", "-p", tmp_path)

    assert ended.returncode == 0, ended.stdout


def test_source_names_no_package_but_react() -> None:
    imported = {
        line.rpartition(" from ")[2].strip("';")
        for path in (CLIENT / "src").rglob("*.ts")
        for line in path.read_text().splitlines()
        if " from '" in line
    }

    assert {name for name in imported if not name.startswith(".")} == {"react"}
    assert {name for name in imported if name.startswith(".") and not name.endswith(".js")} == set()
