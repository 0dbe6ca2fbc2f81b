"""`import forge` loads few modules, because every script and child process pays for them."""

import json
import subprocess
import sys

ASK = """
import json, sys
before = set(sys.modules)
import forge
print(json.dumps(sorted(set(sys.modules) - before)))
"""
# Required wherever jobs are defined or dispatched.
NEEDED = {
    "annotated_types",
    "asyncpg",
    "cronsim",
    "pydantic",
    "pydantic_core",
    "typing_extensions",
    "typing_inspection",
}
# Modules of libraries, the standard one among them, and of Forge itself. With httpx, click, rich
# and jsonschema it would be 170 more.
MAX_FOREIGN = 275
MAX_OWN = 250


def test_only_required_libraries_are_imported() -> None:
    packages = {name.split(".")[0] for name in imported()}

    foreign = packages - sys.stdlib_module_names - {"forge"}
    assert {name for name in foreign if is_a_library(name)} == NEEDED


def test_commands_and_the_server_are_imported_lazily() -> None:
    asleep = ("forge.cli", "forge.http", "forge.integrations", "forge.sync.app")

    assert [name for name in imported() if name.startswith(asleep)] == []


def test_few_modules_are_imported() -> None:
    names = imported()
    own = [name for name in names if name.partition(".")[0] == "forge"]

    assert len(own) <= MAX_OWN
    assert len(names) - len(own) <= MAX_FOREIGN


def imported() -> list[str]:
    answer = subprocess.run(
        [sys.executable, "-c", ASK], capture_output=True, text=True, check=True, timeout=120
    ).stdout
    found: list[str] = json.loads(answer)
    return found


def is_a_library(name: str) -> bool:
    """Whether it is a library, rather than a module of the interpreter or an extension module."""
    return not name.startswith("_") and name != "cython_runtime"
