"""`manage.py forge …`: the commands of `forge` with the project's app, settings and database."""

import os
import sys
from argparse import REMAINDER, ArgumentParser
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from forge.cli.main import run
from forge.cli.processes.init_process import run_below_init
from forge.config.sources import FILE_NAME
from forge.integrations.django.settings import URL_VARIABLE

APP = "forge.integrations.django.command_app:app"
# Options of manage.py, which has read them already.
OWN_OPTIONS = ("--settings", "--pythonpath")


class Command(BaseCommand):
    """Run a `forge` command with this project's jobs, settings and database."""

    help = "Run a forge command, such as `forge worker`; `forge --help` lists them."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("arguments", nargs=REMAINDER)

    def run_from_argv(self, argv: list[str]) -> None:
        """Hand every argument on, `--help` and `--version` too, and exit as `forge` does."""
        run_below_init()
        self.check()
        sys.exit(_run(_without_own_options(argv[2:])))

    def handle(self, *args: Any, arguments: Sequence[str], **options: Any) -> None:
        if code := _run(arguments):
            raise CommandError(f"forge {' '.join(arguments)} exited with {code}", returncode=code)


def _run(arguments: Sequence[str]) -> int:
    if Path(FILE_NAME).exists():
        raise CommandError(
            f"{FILE_NAME} has settings that Django does not read; move them to FORGE in your "
            f"settings module and delete the file, or rename it"
        )
    # For this process and for those that it starts, such as those of `forge worker --processes 4`.
    os.environ["FORGE_APP"] = APP
    os.environ.pop(URL_VARIABLE, None)
    return run(arguments, "manage.py forge")


def _without_own_options(arguments: Sequence[str]) -> list[str]:
    kept, remaining = [], iter(arguments)
    for argument in remaining:
        if argument in OWN_OPTIONS:
            next(remaining, None)
        elif not argument.startswith(tuple(f"{option}=" for option in OWN_OPTIONS)):
            kept.append(argument)
    return kept
