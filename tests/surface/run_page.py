"""Run the Python and SQL of one page in order, as a reader would: `run_page.py PAGE`.

Blocks share their names and may await. What a line says that it prints must be printed, by the
statement that ends there. With `--ask` it runs the blocks whose lines are named on its input, one
by one, as somebody types them at a prompt, and says `done` after each.
"""

import ast
import asyncio
import builtins
import importlib
import inspect
import os
import sys
from pathlib import Path
from typing import Any

import asyncpg

from tests.surface.pages import SAYS, Block, blocks


async def main(page: Path) -> None:
    sys.path.insert(0, os.getcwd())
    for block in blocks(page, "python"):
        if block.runs and block.file is not None:
            importlib.import_module(Path(block.file).stem)
    prompt = Prompt()
    for block in blocks(page, "python", "sql"):
        if block.runs and block.file is None:
            builtins.print(f"{page.name}, line {block.line}", flush=True)
            await prompt.enter(block)


async def answer(page: Path) -> None:
    sys.path.insert(0, os.getcwd())
    prompt = Prompt()
    by_line = {str(block.line): block for block in blocks(page, "python", "sql")}
    while line := (await asyncio.to_thread(sys.stdin.readline)).strip():
        await prompt.enter(by_line[line])
        builtins.print("done", flush=True)


class Prompt:
    """Where the blocks of a page are entered one after another."""

    def __init__(self) -> None:
        self._told = Told()
        self._names: dict[str, Any] = {"__name__": "page", "print": self._told.print_and_check}

    async def enter(self, block: Block) -> None:
        self._told.read(block)
        if block.language == "sql":
            url = os.environ.get("FORGE_DATABASE_URL") or self._names["app"].database_url
            await _run_sql(block, url)
        else:
            await _run(block, self._names)
        assert not self._told.left, f"never printed: {self._told.left}"


class Told:
    """What a page says that its statements print, by the line on which each begins."""

    def __init__(self) -> None:
        self.left: dict[int, str] = {}
        self._by_line: dict[int, str] = {}

    def read(self, block: Block) -> None:
        """Take in what a block says, behind its statements or on a line of its own after one."""
        said: dict[int | None, str] = {}
        for line, text in enumerate(block.code.splitlines(), block.line):
            if found := SAYS.search(text):
                said[line - text.lstrip().startswith("#")] = found[1]
        for node in ast.walk(_parsed(block)) if said else ():
            if isinstance(node, ast.Expr) and node.end_lineno in said:
                self._by_line[node.lineno] = self.left[node.lineno] = said.pop(node.end_lineno)
        assert not said, f"no statement ends on the lines {sorted(said)}"

    def print_and_check(self, *values: Any, **options: Any) -> None:
        builtins.print(*values, **options)
        line = sys._getframe(1).f_lineno
        if (told := self._by_line.get(line)) is not None:
            shown = " ".join(map(str, values))
            assert shown == told, f"line {line} says {told!r} and prints {shown!r}"
            self.left.pop(line, None)


async def _run(block: Block, namespace: dict[str, Any]) -> None:
    parsed = _parsed(block)
    code = compile(parsed, str(block.page), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    running = eval(code, namespace)
    if inspect.iscoroutine(running):
        await running


def _parsed(block: Block) -> ast.Module:
    # Empty lines before it, so that a trace names the line of the page.
    return ast.parse("\n" * (block.line - 1) + block.code)


async def _run_sql(block: Block, url: str) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute(block.code)
    await connection.close()


if __name__ == "__main__":
    *options, path = sys.argv[1:]
    asyncio.run((answer if "--ask" in options else main)(Path(path)))
