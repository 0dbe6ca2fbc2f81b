"""What all commands have in common."""

from collections.abc import Iterator

import click

from forge.cli.main import forge as command_line

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
    return {option for parameter in command.params for option in parameter.opts}
