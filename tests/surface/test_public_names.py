"""The public names: none is added or removed by accident, and their examples run."""

import ast
import doctest
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from tools.public_api import MODULES

import forge
from tests.surface.pages import CHECKOUT, PAGES, blocks

NAMES = forge.__all__
API = CHECKOUT / "docs" / "reference" / "public-api.txt"
# What the pages name the instances of these classes.
VARIABLES = {
    "Forge": "app",
    "JobContext": "ctx",
    "ScheduleContext": "ctx",
    "ActionContext": "ctx",
    "MutationContext": "ctx",
    "CallContext": "ctx",
}
# The pages about the example applications set these up.
NOT_PUBLIC = {"app.session"}


def modules_with_examples() -> list[str]:
    found = []
    for module in pkgutil.walk_packages(forge.__path__, "forge."):
        spec = module.module_finder.find_spec(module.name, None)  # type: ignore[call-arg]
        source = Path(spec.origin).read_text() if spec and spec.origin else ""
        if ">>> " in source:
            found.append(module.name)
    return found


def test_the_public_names_are_the_listed_ones() -> None:
    """`make check` compares the whole list, with members and signatures."""
    listed = {name for name in public_names() if re.fullmatch(r"forge\.\w+", name)}

    assert listed - set(MODULES) == {f"forge.{name}" for name in NAMES}
    assert sorted(NAMES) == NAMES


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_names_in_the_code_of_pages_are_public(page: Path) -> None:
    listed = public_names()
    used = [name for block in blocks(page, "python") for name in names_of_forge(block.code)]

    assert sorted(set(used) - listed - NOT_PUBLIC) == []


def public_names() -> set[str]:
    """Return the names in the list with their modules, and the members of apps and contexts."""
    found, module, owner = set[str](), "", ""
    for line in API.read_text().splitlines():
        name = re.match(r"( *)(?:@\w+ )?(?:class |(?:async )?def )?(\w+)", line)
        if line.startswith("## "):
            module = line.removeprefix("## ")
            found.add(module)
        elif name and name[1]:
            found |= {f"{VARIABLES[owner]}.{name[2]}"} if owner in VARIABLES else set()
        elif name:
            owner = name[2]
            found.add(f"{module}.{owner}")
    return found


def names_of_forge(code: str) -> Iterator[str]:
    """Return what code imports from Forge, and the attributes of `app` and `ctx` that it uses."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("forge"):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Attribute) and ast.unparse(node.value) in VARIABLES.values():
            yield ast.unparse(node)


def test_the_list_of_the_public_api_has_options_errors_and_what_methods_return() -> None:
    listed = API.read_text().splitlines()

    for line in (
        "## forge",
        "## forge.testing.sync",
        "class JobFailed(ForgeError)",
        "class DispatchOptions(TypedDict)",
        "class SyncForge",
    ):
        assert line in listed
    assert any(line.startswith("    async def dispatch(job: ") for line in listed)
    assert not [line for line in listed if re.match(r"    (async )?def _(?!_)", line)]


@pytest.mark.parametrize("name", sorted(NAMES))
def test_every_public_name_exists_and_has_a_docstring_of_one_sentence(name: str) -> None:
    doc = inspect.getdoc(getattr(forge, name)) or ""

    first = doc.splitlines()[0] if doc else ""
    assert first.endswith((".", ":")) or ". " in first


def test_every_error_belongs_to_the_error_tree() -> None:
    errors = [getattr(forge, name) for name in NAMES if _is_error(getattr(forge, name))]

    assert len(errors) > 10
    assert all(issubclass(error, forge.ForgeError) for error in errors)


def test_every_error_has_the_name_and_module_of_its_import() -> None:
    errors = {name: getattr(forge, name) for name in NAMES if _is_error(getattr(forge, name))}

    assert {f"{value.__module__}.{value.__qualname__}" for value in errors.values()} == {
        f"forge.{name}" for name in errors
    }


@pytest.mark.parametrize("name", modules_with_examples())
def test_the_examples_in_the_documentation_run(name: str) -> None:
    module: ModuleType = importlib.import_module(name)

    failed, run = doctest.testmod(module)

    assert run > 0
    assert failed == 0


def test_examples_are_found() -> None:
    assert {"forge.definitions.job", "forge.core.retry"} <= set(modules_with_examples())


def _is_error(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, BaseException)
