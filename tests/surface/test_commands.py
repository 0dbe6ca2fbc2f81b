"""Requirements that every command meets."""

import re
from collections.abc import Iterator

import click

from forge.cli.main import forge as command_line
from tests.surface.test_reference import command_in, table

# These run until they are stopped, and write a log or speak a protocol.
LASTING = {"dev", "mcp", "server", "worker"}


def test_every_command_that_ends_has_json_output() -> None:
    silent = {path for path, command in commands(command_line) if "--json" not in options(command)}

    assert silent == LASTING


def test_every_command_has_an_option_for_the_full_traceback() -> None:
    assert [path for path, it in commands(command_line) if "--traceback" not in options(it)] == []


def test_every_command_and_option_has_help() -> None:
    for path, command in commands(command_line):
        assert (command.help or "").strip(), path
        for parameter in command.params:
            if isinstance(parameter, click.Option) and not parameter.hidden:
                assert parameter.help, f"{path}: {parameter.name}"


def test_the_page_names_only_existing_options() -> None:
    known = {path: options(command) for path, command in commands(command_line)}
    rows = [(command_in(row[0]), row[1]) for row in table("cli.md", "command")]

    documented = {path: set(re.findall(r"`(--[\w-]+)`", text)) for path, text in rows}

    assert sum(map(len, documented.values())) > 40
    assert {
        path: named - known[path] for path, named in documented.items() if named - known[path]
    } == {}


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
