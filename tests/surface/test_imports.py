"""What `import forge` brings along: little, for every script, web process and child pays for it."""

import json
import subprocess
import sys

ASK = """
import json, sys
before = set(sys.modules)
import forge
print(json.dumps(sorted(set(sys.modules) - before)))
"""
# What is needed wherever jobs are defined or dispatched.
NEEDED = {
    "annotated_types",
    "asyncpg",
    "cronsim",
    "pydantic",
    "pydantic_core",
    "typing_extensions",
    "typing_inspection",
}
# It comes to 440 with nothing but these; httpx, click, rich and jsonschema would make it 610.
MOST_MODULES = 480


def test_only_the_libraries_that_everybody_needs_are_imported() -> None:
    packages = {name.split(".")[0] for name in imported()}

    foreign = packages - sys.stdlib_module_names - {"forge"}
    assert {name for name in foreign if is_a_library(name)} == NEEDED


def test_commands_and_the_server_are_left_until_they_are_asked_for() -> None:
    asleep = ("forge.cli", "forge.http", "forge.integrations", "forge.sync")

    assert [name for name in imported() if name.startswith(asleep)] == []


def test_not_many_modules_are_imported() -> None:
    assert len(imported()) <= MOST_MODULES


def imported() -> list[str]:
    answer = subprocess.run(
        [sys.executable, "-c", ASK], capture_output=True, text=True, check=True, timeout=120
    ).stdout
    found: list[str] = json.loads(answer)
    return found


def is_a_library(name: str) -> bool:
    """Whether it is one, rather than what an extension module or the interpreter makes up."""
    return not name.startswith("_") and name != "cython_runtime"
