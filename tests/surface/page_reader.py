"""Follow a page from top to bottom in an empty folder, without configuration."""

import os
import shlex
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.cli.command import FORGE
from tests.faults.kit.process import spawn, wait_until
from tests.surface.pages import CHECKOUT, Block, blocks

RUN = ("forge", "python")


class PageReader:
    """Writes the files of a page, runs its commands, and enters the rest at a Python prompt."""

    def __init__(self, page: Path, folder: Path) -> None:
        self._page = page
        self._folder = folder
        self._left_running = ExitStack()
        self._prompt: subprocess.Popen[str] | None = None

    def follow(self) -> None:
        for block in blocks(self._page, "python", "sql", "sh"):
            if block.language == "sh":
                self._run_commands(block)
            elif block.file is not None:
                self._write(block)
            elif block.runs:
                self._enter(block)
        self._leave_prompt()

    def _write(self, block: Block) -> None:
        # Python imports a module once, so a reader restarts the prompt after a change.
        self._leave_prompt()
        with (self._folder / str(block.file)).open("a") as file:
            file.write(block.code)

    def _run_commands(self, block: Block) -> None:
        files = {b.file: b for b in blocks(self._page, "python") if b.file}
        for line in block.code.splitlines():
            program, *arguments = shlex.split(line, comments=True) or [""]
            if program not in RUN or not any(self._folder.glob("*.py")) or "-m" in arguments:
                continue
            if arguments[0] == "dev":
                self._start_dev(arguments)
                continue
            printed = self._run(FORGE if program == "forge" else sys.executable, *arguments)
            script = files.get(arguments[0])
            for text in script.expected_output if script else ():
                assert text in printed.splitlines(), f"{line} does not print {text}:\n{printed}"

    def _start_dev(self, arguments: list[str]) -> None:
        child = spawn([FORGE, *arguments], cwd=self._folder)
        self._left_running.enter_context(child)
        wait_until(
            lambda: " runs " in child.output() or not child.is_alive, 60, "forge dev has started"
        )
        assert child.is_alive, child.output()

    def _run(self, program: str | Path, *arguments: str) -> str:
        ended = subprocess.run(
            [program, *arguments],
            cwd=self._folder,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        assert ended.returncode == 0, f"{arguments}: {ended.stdout}\n{ended.stderr}"
        return ended.stdout

    def _enter(self, block: Block) -> None:
        self._prompt = self._prompt or self._new_prompt()
        assert self._prompt.stdin is not None
        assert self._prompt.stdout is not None
        self._prompt.stdin.write(f"{block.line}\n")
        self._prompt.stdin.flush()
        printed = []
        while (line := self._prompt.stdout.readline()) != "done\n":
            printed.append(line)
            assert line, f"line {block.line} of {self._page.name}: {''.join(printed)}"

    def _new_prompt(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "tests.surface.run_page", "--prompt", str(self._page)],
            cwd=self._folder,
            env=os.environ | {"PYTHONPATH": str(CHECKOUT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def _leave_prompt(self) -> None:
        prompt, self._prompt = self._prompt, None
        if prompt is not None:
            printed, _ = prompt.communicate("\n", timeout=30)
            assert prompt.returncode == 0, printed

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._prompt is not None:
            self._prompt.kill()
            self._prompt.wait()
        self._left_running.close()
