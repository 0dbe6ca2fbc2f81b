"""Run the Python and SQL of one page in order, as a reader would: `run_page.py PAGE`.

Blocks share their names and may await. A line that says what it prints is held to it.
"""

import ast
import asyncio
import builtins
import inspect
import os
import sys
from pathlib import Path
from typing import Any

import asyncpg

from tests.surface.pages import SAYS, Block, blocks


async def main(page: Path) -> None:
    sys.path.insert(0, os.getcwd())
    namespace: dict[str, Any] = {"__name__": "page", "print": _print_as_told(page)}
    for block in blocks(page, "python", "sql"):
        if block.runs and block.file is None:
            builtins.print(f"{page.name}, line {block.line}", flush=True)
            await (_run_sql(block) if block.language == "sql" else _run(block, namespace))


def _print_as_told(page: Path) -> Any:
    lines = page.read_text().splitlines()

    def print_and_check(*values: Any, **options: Any) -> None:
        builtins.print(*values, **options)
        line = sys._getframe(1).f_lineno
        if told := SAYS.search(lines[line - 1]):
            shown = " ".join(map(str, values))
            assert shown == told[1], f"line {line} says {told[1]!r} and prints {shown!r}"

    return print_and_check


async def _run(block: Block, namespace: dict[str, Any]) -> None:
    # Empty lines before it, so that a trace names the line of the page.
    source = "\n" * (block.line - 1) + block.code
    code = compile(source, str(block.page), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    running = eval(code, namespace)
    if inspect.iscoroutine(running):
        await running


async def _run_sql(block: Block) -> None:
    connection = await asyncpg.connect(os.environ["FORGE_DATABASE_URL"])
    await connection.execute(block.code)
    await connection.close()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
