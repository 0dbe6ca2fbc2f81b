"""The public names: none is added or removed by accident, and their examples run."""

import doctest
import importlib
import inspect
import pkgutil
import re
from pathlib import Path
from types import ModuleType

import pytest
from tools.public_api import public_api

import forge
from tests.surface.pages import CHECKOUT

NAMES = forge.__all__


def modules_with_examples() -> list[str]:
    found = []
    for module in pkgutil.walk_packages(forge.__path__, "forge."):
        spec = module.module_finder.find_spec(module.name, None)  # type: ignore[call-arg]
        source = Path(spec.origin).read_text() if spec and spec.origin else ""
        if ">>> " in source:
            found.append(module.name)
    return found


def test_the_public_names_are_sorted() -> None:
    assert sorted(NAMES) == NAMES


def test_the_list_of_the_public_api_is_that_of_the_code() -> None:
    """A change of a public name or signature is a visible diff."""
    listed = (CHECKOUT / "docs" / "reference" / "public-api.txt").read_text()

    assert listed == public_api(), "run `make format`, and add the change to CHANGELOG.md"


def test_the_list_of_the_public_api_has_options_errors_and_what_methods_return() -> None:
    listed = (CHECKOUT / "docs" / "reference" / "public-api.txt").read_text().splitlines()

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
