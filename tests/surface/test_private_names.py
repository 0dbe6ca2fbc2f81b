"""No module of Forge uses the private names of another one."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import forge

SOURCE = Path(forge.__file__).parent
# Public names that begin with an underscore: those of every NamedTuple, of Django's models, and of
# the standard library, which has no other name for them.
PUBLIC = {
    "_meta",
    "_asdict",
    "_field_defaults",
    "_fields",
    "_make",
    "_replace",
    "os._exit",
    "sys._current_frames",
    "sys._getframe",
    "asyncio._set_running_loop",
}


def test_a_module_uses_private_names_of_its_own_only() -> None:
    modules = sorted(SOURCE.rglob("*.py"))

    assert [
        f"{module.relative_to(SOURCE)}:{use}"
        for module in modules
        for use in foreign_names(module.read_text())
    ] == []
    assert len(modules) > 100


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("app._catalog.find(job)", ["1: app._catalog"]),
        ("class A:\n    def f(self):\n        self._b._c", ["3: self._b._c"]),
        ("from forge.app import _hidden", ["1: import _hidden"]),
        ("getattr(app, '_catalog')", ["1: getattr(app, '_catalog')"]),
        ("getattr(connection, '_transport', None)", []),
        ("class A:\n    def f(self):\n        self._b.c", []),
        ("class A:\n    def f(self, other):\n        self._b = other._b", []),
        ("class A:\n    _b: int\ndef f(a):\n    return a._b", []),
        (
            "class A:\n    def f(self):\n        self._b = 1\ndef f(a):\n    return a._c",
            ["5: a._c"],
        ),
        ("job._replace(lease=1)", []),
        ("os._exit(1)", []),
        ("a.__class__", []),
    ],
)
def test_the_check_finds_names_of_other_modules(source: str, found: list[str]) -> None:
    assert list(foreign_names(source)) == found


def foreign_names(source: str) -> Iterator[str]:
    """Yield the uses of private names that neither this module nor a class in it defines."""
    tree = ast.parse(source)
    own = set(_defined(tree))
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id="self" | "cls")):
                continue
            case ast.Attribute(attr=name) if _is_private(name):
                text = ast.unparse(node)
                if name not in own | PUBLIC and text not in PUBLIC:
                    yield f"{node.lineno}: {text}"
            case ast.ImportFrom(names=names):
                for each in names:
                    if _is_private(each.name):
                        yield f"{node.lineno}: import {each.name}"
            # With a default it asks a library for what another version of it may not have.
            case ast.Call(func=ast.Name(id="getattr"), args=[_, ast.Constant(value=str(name))]) if (
                _is_private(name) and name not in own
            ):
                yield f"{node.lineno}: {ast.unparse(node)}"


def _defined(tree: ast.AST) -> Iterator[str]:
    """Yield the names that classes of a module define: methods, fields, attributes of `self`."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.ClassDef):
            continue
        for inner in ast.walk(node):
            match inner:
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                    yield name
                case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name, ctx=ast.Store()):
                    yield name
                case ast.Name(id=name, ctx=ast.Store()):
                    yield name


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")
