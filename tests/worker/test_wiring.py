"""How the parts of a worker are put together, checked in their source."""

import ast
from collections.abc import Iterator
from pathlib import Path

import forge

PACKAGE = Path(forge.__file__).parent
Functions = ast.FunctionDef | ast.AsyncFunctionDef


def test_no_part_of_a_worker_asks_whether_a_job_is_a_schedule_run() -> None:
    asked = [
        f"{path}:{node.lineno}"
        for path, node in _nodes("worker")
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "isinstance"
        and "Run" in [name.id for name in ast.walk(node.args[1]) if isinstance(name, ast.Name)]
    ]

    assert asked == []


def test_no_part_of_a_worker_asks_which_transport_it_has() -> None:
    """Attributes of the configuration that distinguish transports, and modules of one of them."""
    asked = [
        f"{path}:{node.lineno}"
        for path, node in _nodes("worker")
        if (isinstance(node, ast.Attribute) and node.attr in ("sqs", "messages"))
        or (isinstance(node, ast.Attribute) and ast.unparse(node).endswith("transport.queues"))
        or (isinstance(node, ast.ImportFrom) and _is_of_one_transport(node.module or ""))
    ]

    assert asked == []


def test_no_part_is_given_the_whole_worker() -> None:
    importers = {
        str(path)
        for path, node in _nodes("worker", "transports")
        if isinstance(node, ast.ImportFrom) and node.module == "forge.worker.worker"
    }

    assert importers == set()


def test_no_object_is_given_a_callback_after_its_construction() -> None:
    functions = {
        node.name
        for _, node in _nodes("worker", "transports")
        if isinstance(node, Functions) and "property" not in map(ast.unparse, node.decorator_list)
    }
    patched = [
        f"{path}:{node.lineno}: {ast.unparse(target)}"
        for path, node in _nodes("worker", "transports")
        if isinstance(node, ast.Assign) and _is_callable(node.value, functions)
        for target in node.targets
        if isinstance(target, ast.Attribute) and ast.unparse(target.value) != "self"
    ]

    assert patched == []


def _is_callable(value: ast.expr, functions: set[str]) -> bool:
    match value:
        case ast.Lambda():
            return True
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name in functions
        case ast.Call(func=ast.Name(id="partial")):
            return True
        case ast.IfExp(body=body, orelse=otherwise):
            return _is_callable(body, functions) or _is_callable(otherwise, functions)
    return False


def _is_of_one_transport(module: str) -> bool:
    return module.startswith(("forge.transports.sqs", "forge.transports.postgres"))


def _nodes(*packages: str) -> Iterator[tuple[Path, ast.AST]]:
    for package in packages:
        for path in sorted((PACKAGE / package).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text())):
                yield path.relative_to(PACKAGE), node
