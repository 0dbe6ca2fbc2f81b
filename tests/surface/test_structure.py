"""Structure that can be read off the source: constructors, names of classes and of modules."""

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import forge

PACKAGE = Path(forge.__file__).parent
MAX_PARAMETERS = 6
# The attributes of @forge.job and @forge.schedule, which users pass by name.
DEFINITIONS = {"JobDefinition", "ScheduleDefinition"}
# forge.http is the server; modules of integrations are named after the library that they serve.
NAMED_LIKE_A_PACKAGE = {"http"}


def test_constructors_have_at_most_six_parameters() -> None:
    long = [
        f"{path}: {cls.name}"
        for path, cls in _classes()
        for init in cls.body
        if isinstance(init, ast.FunctionDef) and init.name == "__init__"
        if len([*init.args.posonlyargs, *init.args.args, *init.args.kwonlyargs]) - 1
        > MAX_PARAMETERS
        if cls.name not in DEFINITIONS
    ]

    assert long == []


def test_two_classes_do_not_share_a_name() -> None:
    homes: dict[str, list[str]] = defaultdict(list)
    for path, cls in _classes():
        if str(path).startswith(NAMED_BY_DJANGO):
            continue
        homes[cls.name].append(str(path))

    shared = {name: paths for name, paths in homes.items() if len(paths) > 1}

    assert shared == {}


def test_a_module_does_not_share_its_name_with_a_package() -> None:
    known = (sys.stdlib_module_names | packages_distributions().keys()) - NAMED_LIKE_A_PACKAGE
    modules = [path.relative_to(PACKAGE).with_suffix("") for path in PACKAGE.rglob("*.py")]

    shared = [
        str(path)
        for path in modules
        if path.parts[0] != "integrations" and not known.isdisjoint(path.parts)
    ]

    assert shared == []
    assert {"types", "secrets", "httpx", "pydantic"} <= known


# A migration is a class of this name, and a model is named after what its table has.
NAMED_BY_DJANGO = ("integrations/django/migrations/", "integrations/django/models.py")


def _classes() -> Iterator[tuple[Path, ast.ClassDef]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef):
                yield path.relative_to(PACKAGE), node
