"""What all commands have in common."""

import re
from collections.abc import Iterator

import click

from forge.cli.main import forge as command_line
from tests.surface.test_reference import command_in, table

# They run until they are told to stop, and write a log.
LASTING = {"dev", "server", "worker"}


def test_every_command_that_ends_speaks_json() -> None:
    silent = {path for path, command in commands(command_line) if "--json" not in options(command)}

    assert silent == LASTING


def test_every_command_shows_the_whole_trace_when_asked() -> None:
    assert [path for path, it in commands(command_line) if "--traceback" not in options(it)] == []


def test_every_command_says_what_it_does_and_each_option_too() -> None:
    for path, command in commands(command_line):
        assert (command.help or "").strip(), path
        for parameter in command.params:
            if isinstance(parameter, click.Option) and not parameter.hidden:
                assert parameter.help, f"{path}: {parameter.name}"


def test_the_page_names_no_option_that_a_command_lacks() -> None:
    known = {path: options(command) for path, command in commands(command_line)}
    rows = [(command_in(row[0]), row[1]) for row in table("cli.md", "command")]

    told = {path: set(re.findall(r"`(--[\w-]+)`", said)) for path, said in rows}

    assert sum(map(len, told.values())) > 40
    assert {path: named - known[path] for path, named in told.items() if named - known[path]} == {}


def commands(group: click.Group, path: str = "") -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, f"{path}{name} ")
        else:
            yield f"{path}{name}", command


def options(command: click.Command) -> set[str]:
    return {flag for given in command.params for flag in (*given.opts, *given.secondary_opts)}
