"""`forge`: each command is a module of its own, imported when it is used."""

import io
import os
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from importlib.metadata import version
from typing import Any, NamedTuple

import click

from forge.cli.options import traceback_option
from forge.cli.processes.init_process import run_below_init
from forge.core.errors import ConfigError, ForgeError, InvalidPayload, InvalidValue


class CommandGroup(NamedTuple):
    """The help text and the commands of a group such as `forge jobs`."""

    help: str
    commands: "CommandTable"
    # The command to run where none is named.
    default: str | None = None


# The import path of each command, or a group of commands.
CommandTable = Mapping[str, str | CommandGroup]

COMMANDS: CommandTable = {
    "audit": "forge.cli.audit:audit",
    "bench": "forge.cli.bench:bench",
    "completion": "forge.cli.completion:completion",
    "dev": "forge.cli.processes.dev:dev",
    "dispatch": "forge.cli.dispatch:dispatch",
    "dlq": CommandGroup(
        "List, show, group, reprocess and discard dead letters.",
        {
            "discard": "forge.cli.dlq.discard:discard",
            "groups": "forge.cli.dlq.list:groups",
            "list": "forge.cli.dlq.list:list_letters",
            "reprocess": "forge.cli.dlq.reprocess:reprocess",
            "show": "forge.cli.dlq.show:show",
        },
    ),
    "doctor": "forge.cli.doctor:doctor",
    "generate": CommandGroup(
        "Write code for other languages from the app's job types.",
        {"typescript": "forge.cli.generate.typescript:typescript"},
    ),
    "init": "forge.cli.init:init",
    "jobs": CommandGroup(
        "List, show and explain jobs; cancel, delete, rerun, reschedule and move them.",
        {
            "bulk": "forge.cli.jobs.bulk:bulk",
            "cancel": "forge.cli.jobs.job_requests:cancel",
            "delete": "forge.cli.jobs.job_requests:delete",
            "list": "forge.cli.jobs.list:list_jobs",
            "move": "forge.cli.jobs.job_requests:move",
            "reprioritise": "forge.cli.jobs.job_requests:reprioritise",
            "rerun": "forge.cli.jobs.rerun:rerun",
            "reschedule": "forge.cli.jobs.job_requests:reschedule",
            "run-now": "forge.cli.jobs.job_requests:run_now",
            "show": "forge.cli.jobs.show:show",
            "why": "forge.cli.jobs.why:why",
        },
    ),
    "mcp": "forge.cli.mcp_server.command:mcp",
    "migrate": "forge.cli.migrate:migrate",
    "overview": "forge.cli.overview:overview",
    "pause": "forge.cli.pauses:pause",
    "pauses": "forge.cli.pauses:pauses",
    "resume": "forge.cli.pauses:resume",
    "schedules": CommandGroup(
        "List, show, edit, enable, disable and run schedules.",
        {
            "disable": "forge.cli.schedules.move:disable",
            "edit": "forge.cli.schedules.edit:edit",
            "enable": "forge.cli.schedules.move:enable",
            "list": "forge.cli.schedules.list:list_schedules",
            "preview": "forge.cli.schedules.edit:preview",
            "run": "forge.cli.schedules.move:run_now",
            "show": "forge.cli.schedules.show:show",
        },
    ),
    "server": "forge.cli.processes.server:server",
    "stats": "forge.cli.stats:stats",
    "token": CommandGroup("Create tokens for the server.", {"create": "forge.cli.tokens:create"}),
    "top": "forge.cli.top.command:top",
    "worker": "forge.cli.processes.worker:worker",
    "workers": CommandGroup(
        "List workers; show, drain and resume them.",
        {
            "drain": "forge.cli.workers:drain",
            "list": "forge.cli.workers:list_command",
            "resume": "forge.cli.workers:resume",
            "show": "forge.cli.workers:show",
        },
        default="list",
    ),
}
WRONG_USAGE = 2
INTERRUPTED = 130


class LazyGroup(click.Group):
    """A group that imports a command when it is used."""

    def __init__(self, table: CommandTable, default: str | None = None, **options: Any) -> None:
        super().__init__(**options)
        self._table = table
        self._default = default

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        is_named = any(not arg.startswith("-") for arg in args[:1])
        if self._default and not is_named and not {*args[:1]} & {*ctx.help_option_names}:
            args = [self._default, *args]
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._table)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        match self._table.get(name):
            case None:
                return None
            case CommandGroup(help=text, commands=table, default=default):
                return LazyGroup(table, default, name=name, help=text)
            case str(path):
                module, attribute = path.split(":")
                command: click.Command = getattr(import_module(module), attribute)
                return command

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise OutputClosed from error  # click would end the process with exit code 1


class OutputClosed(Exception):
    """The program that reads the output has ended, as in `forge jobs list | head`."""


forge = traceback_option(
    click.version_option(version("forge-jobs"), prog_name="forge")(
        LazyGroup(
            COMMANDS,
            name="forge",
            help="Durable background jobs on PostgreSQL.",
            context_settings={"help_option_names": ["-h", "--help"]},
        )
    )
)


def main() -> None:
    """Run the command and exit the process with its exit code."""
    run_below_init()
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str], name: str = "forge") -> int:
    """Run a command and print an error on one line if it fails."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Escape characters that the terminal's encoding lacks.
            stream.reconfigure(errors="backslashreplace")
    try:
        # As on https://no-color.org; rich follows it by itself.
        color = False if os.environ.get("NO_COLOR") else None
        code = forge.main(list(arguments), prog_name=name, standalone_mode=False, color=color)
        return code if isinstance(code, int) else 0
    except click.exceptions.Abort:
        return INTERRUPTED
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except OutputClosed:
        # Discard what is still buffered: the interpreter would fail to flush it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        return _print_error(error)


def _print_error(error: Exception) -> int:
    from forge.cli.output import say

    if os.environ.get("FORGE_TRACEBACK"):
        traceback.print_exception(error)
    known = next((inner for inner in _leaves(error) if isinstance(inner, ForgeError)), None)
    if known is None:
        advice = "this is a bug in Forge; run it again with --traceback and report the output"
        say(f"forge: unexpected {type(error).__name__}: {error}; {advice}", err=True)
        return 1
    say(f"forge: {known}", err=True)
    return WRONG_USAGE if isinstance(known, ConfigError | InvalidValue | InvalidPayload) else 1


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error


if __name__ == "__main__":
    main()
