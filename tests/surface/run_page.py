"""Run the Python and SQL of pages in order, as a reader would: `run_page.py PAGE…`.

The blocks of a page share a namespace and may await. The output that a line shows must be printed
by the statement that ends there. With `--prompt`, standard input selects blocks by line number;
they run one by one, as at a Python prompt, and `done` is printed after each.
"""

import ast
import asyncio
import builtins
import importlib
import inspect
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import asyncpg

from tests.surface.pages import PRINTS, Block, blocks


async def main(pages: Sequence[Path]) -> None:
    sys.path.insert(0, os.getcwd())
    for page in pages:
        await run(page)


async def run(page: Path) -> None:
    for block in blocks(page, "python"):
        if block.runs and block.file is not None:
            importlib.import_module(Path(block.file).stem)
    prompt = Prompt()
    for block in blocks(page, "python", "sql"):
        if block.runs and block.file is None:
            builtins.print(f"{page.name}, line {block.line}", flush=True)
            await prompt.enter(block)


async def serve_prompt(page: Path) -> None:
    sys.path.insert(0, os.getcwd())
    prompt = Prompt()
    by_line = {str(block.line): block for block in blocks(page, "python", "sql")}
    while line := (await asyncio.to_thread(sys.stdin.readline)).strip():
        await prompt.enter(by_line[line])
        builtins.print("done", flush=True)


class Prompt:
    """Runs the blocks of a page one after another in one namespace."""

    def __init__(self) -> None:
        self._expected = ExpectedOutput()
        self._names: dict[str, Any] = {"__name__": "page", "print": self._expected.print_and_check}

    async def enter(self, block: Block) -> None:
        self._expected.read(block)
        if block.language == "sql":
            url = os.environ.get("FORGE_DATABASE_URL") or self._names["app"].database_url
            await _run_sql(block, url)
        else:
            await _run(block, self._names)
        assert not self._expected.left, f"never printed: {self._expected.left}"


class ExpectedOutput:
    """The output that a page shows for its statements, by the first line of each statement."""

    def __init__(self) -> None:
        self.left: dict[int, str] = {}
        self._by_line: dict[int, str] = {}

    def read(self, block: Block) -> None:
        """Read the expected output of a block: after a statement, or in a comment below it."""
        expected: dict[int | None, str] = {}
        for line, text in enumerate(block.code.splitlines(), block.line):
            if found := PRINTS.search(text):
                expected[line - text.lstrip().startswith("#")] = found[1]
        for node in ast.walk(_parsed(block)) if expected else ():
            if isinstance(node, ast.Expr) and node.end_lineno in expected:
                self._by_line[node.lineno] = self.left[node.lineno] = expected.pop(node.end_lineno)
        assert not expected, f"no statement ends on the lines {sorted(expected)}"

    def print_and_check(self, *values: Any, **options: Any) -> None:
        builtins.print(*values, **options)
        line = sys._getframe(1).f_lineno
        if (expected := self._by_line.get(line)) is not None:
            shown = " ".join(map(str, values))
            assert shown == expected, f"line {line} shows {expected!r} but prints {shown!r}"
            self.left.pop(line, None)


async def _run(block: Block, namespace: dict[str, Any]) -> None:
    parsed = _parsed(block)
    code = compile(parsed, str(block.page), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    running = eval(code, namespace)
    if inspect.iscoroutine(running):
        await running


def _parsed(block: Block) -> ast.Module:
    # Prepend empty lines, so that tracebacks have the line numbers of the page.
    return ast.parse("\n" * (block.line - 1) + block.code)


async def _run_sql(block: Block, url: str) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute(block.code)
    await connection.close()


if __name__ == "__main__":
    if sys.argv[1] == "--prompt":
        asyncio.run(serve_prompt(Path(sys.argv[2])))
    else:
        asyncio.run(main([Path(page) for page in sys.argv[1:]]))
