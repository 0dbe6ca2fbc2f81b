"""`forge`: each command in a file of its own, imported when it is asked for."""

import io
import os
import sys
import traceback
from collections.abc import Iterator, Sequence
from importlib import import_module
from importlib.metadata import version
from typing import Any

import click

from forge.cli.init_process import run_below_init
from forge.cli.options import traceback_option
from forge.core.errors import ConfigError, ForgeError, InvalidPayload, InvalidValue

COMMANDS = {
    "audit": "forge.cli.audit:audit",
    "bench": "forge.cli.bench:bench",
    "dev": "forge.cli.dev:dev",
    "dispatch": "forge.cli.dispatch:dispatch",
    "dlq": "forge.cli.dlq:dlq",
    "doctor": "forge.cli.doctor:doctor",
    "jobs": "forge.cli.jobs:jobs",
    "migrate": "forge.cli.migrate:migrate",
    "schedules": "forge.cli.schedules:schedules",
    "server": "forge.cli.server:server",
    "token": "forge.cli.token:token",
    "worker": "forge.cli.worker:worker",
    "workers": "forge.cli.workers:workers",
}
WRONG_USAGE = 2
INTERRUPTED = 130


class LazyCommands(click.Group):
    """A group that knows its commands by name and place."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if (place := COMMANDS.get(name)) is None:
            return None
        module, attribute = place.split(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise OutputClosed from error  # click would end the process with exit code 1


class OutputClosed(Exception):
    """The program that reads the output has ended, as in `forge jobs list | head`."""


@click.group(cls=LazyCommands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(version("forge-jobs"), prog_name="forge")
@traceback_option
def forge() -> None:
    """Durable background jobs on PostgreSQL."""


def main() -> None:
    """Run the command that was asked for, and end the process with its exit code."""
    run_below_init()
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run a command and say in one line what went wrong, if anything did."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that has no such character shows its number.
            stream.reconfigure(errors="backslashreplace")
    try:
        code = forge.main(list(arguments), prog_name="forge", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except click.exceptions.Abort:
        return INTERRUPTED
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except OutputClosed:
        # What is still buffered is discarded: the interpreter would fail to write it at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        return _explain(error)


def _explain(error: Exception) -> int:
    from forge.cli.show import say

    if os.environ.get("FORGE_TRACEBACK"):
        traceback.print_exception(error)
    ours = next((inner for inner in _leaves(error) if isinstance(inner, ForgeError)), None)
    if ours is None:
        advice = "this is a fault in Forge; run it again with --traceback and report what it says"
        say(f"forge: unexpected {type(error).__name__}: {error}; {advice}", err=True)
        return 1
    say(f"forge: {ours}", err=True)
    return WRONG_USAGE if isinstance(ours, ConfigError | InvalidValue | InvalidPayload) else 1


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error


if __name__ == "__main__":
    main()
