"""Output of the tour: progress bars and a table in a terminal, plain lines otherwise."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from shutil import which
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table

from forge.store.embedded import Binaries

HINTS = """
The workers stay up until Ctrl-C, and the bakery sells cakes. The dashboard shows it:

  {dashboard}

Or look around from another terminal, in this folder:

  {forge} jobs list --limit 10
  {forge} jobs list --status dead_letter
  {forge} dispatch bake_cake '{{"flavour": "lemon", "layers": 4}}' --watch
  {forge} workers
  {psql} "{url}" -c 'select job_type, status, count(*) from forge_jobs group by 1, 2'
"""


class Screen:
    """Prints the tour to standard output."""

    def __init__(self) -> None:
        self.is_terminal = sys.stdout.isatty()
        # Outside a terminal, use a fixed width so that lines are not wrapped.
        width = None if self.is_terminal else 120
        self._console = Console(width=width, force_terminal=self.is_terminal, highlight=False)

    def say(self, text: str) -> None:
        self._console.print(text, soft_wrap=True)

    @contextmanager
    def lines(self) -> Iterator["Lines"]:
        """Show a progress line for each job until the end of the block."""
        bars = Progress(
            TextColumn("[bold]{task.description:<18}"),
            BarColumn(bar_width=24, finished_style="green"),
            TextColumn("{task.fields[status]:<9}"),
            TextColumn("{task.fields[message]}"),
            console=self._console,
            disable=not self.is_terminal,
        )
        with bars:
            yield Lines(self, bars)

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
        for index, column in enumerate(columns):
            table.add_column(column, justify="left" if index < 2 else "right", no_wrap=True)
        for row in rows:
            table.add_row(*map(str, row))
        self._console.print(table)

    def print_hints(self, dashboard: str, url: str | None) -> None:
        forge = Path(sys.executable).with_name("forge")
        if forge.is_relative_to(Path.cwd()):
            forge = forge.relative_to(Path.cwd())
        psql = "psql" if which("psql") else Binaries.from_wheel().folder / "psql"
        self.say(
            HINTS.format(
                dashboard=dashboard, forge=forge, psql=psql, url=url or "$FORGE_DATABASE_URL"
            )
        )


class Lines:
    """The progress lines, one per followed job."""

    def __init__(self, screen: Screen, bars: Progress) -> None:
        self._screen = screen
        self._bars = bars

    def add(self, name: str) -> "Line":
        task = self._bars.add_task(name, total=100, status="", message="")
        return Line(self._screen, self._bars, task, name)


class Line:
    """The progress of one job or of a group of jobs."""

    def __init__(self, screen: Screen, bars: Progress, task: Any, name: str) -> None:
        self._screen = screen
        self._bars = bars
        self._task = task
        self._name = name
        self._printed = ("", "")

    def show(self, percent: float, status: str, message: str) -> None:
        self._bars.update(self._task, completed=percent, status=status, message=message)
        if not self._screen.is_terminal and (status, message) != self._printed:
            self._printed = (status, message)
            print(f"{self._name:<18} {percent:3.0f}%  {status:<9}  {message}".rstrip(), flush=True)
