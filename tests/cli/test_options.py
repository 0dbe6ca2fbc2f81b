"""No option of a command is accepted and ignored."""

import ast
import inspect
import textwrap
from collections.abc import Iterator

import click
import pytest

from forge.cli.main import COMMANDS, forge
from tests.cli.command import Project, project_fixture

__all__ = ["project_fixture"]


def _commands(
    group: click.Command = forge, path: tuple[str, ...] = ()
) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    if not isinstance(group, click.Group):
        yield " ".join(path), group
        return
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield from _commands(command, (*path, name))


def _uses(callback: object, name: str) -> bool:
    """Whether a function reads a parameter, or passes its keyword arguments on."""
    function = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(callback)))).body[0]  # type: ignore[arg-type]
    assert isinstance(function, ast.FunctionDef)
    named = {argument.arg for argument in (*function.args.args, *function.args.kwonlyargs)}
    read = {
        node.id
        for statement in function.body
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    }
    rest = function.args.kwarg
    return name in read if name in named else rest is not None and rest.arg in read


def test_every_option_is_used() -> None:
    found = dict(_commands())
    ignored = [
        f"forge {command} {parameter.opts[0]}"
        for command, defined in found.items()
        for parameter in defined.params
        if parameter.expose_value and parameter.name != "help"
        if not _uses(defined.callback, parameter.name or "")
    ]

    assert len(found) > len(COMMANDS)
    assert ignored == []


@pytest.mark.parametrize(
    "arguments",
    [
        *(
            f"dlq reprocess 1 {option}"
            for option in (
                "--rate 5",
                "--canary 0",
                "--canary-timeout 1m",
                "--max-failures 3",
                "--priority high",
                "--no-wait",
            )
        ),
        "dlq reprocess --all --payload {}",
        "dlq reprocess 1 --payload null",
        "dlq reprocess 1 --patch null",
        "dlq reprocess --all --patch {}",
        "dlq discard 1 --dry-run",
        "dlq discard 1 --no-wait",
        "migrate --sql --json",
    ],
)
def test_conflicting_options_are_refused(project: Project, arguments: str) -> None:
    ended = project.forge(*arguments.split())

    assert ended.returncode == 2
    assert "leave" in ended.stderr or "pass its id" in ended.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        "jobs list --type",
        "jobs list --queue",
        "dlq list --type",
        "dlq groups --fingerprint",
        "schedules list --type",
        "audit --event",
        "audit --actor",
    ],
)
def test_an_empty_filter_is_refused(project: Project, arguments: str) -> None:
    ended = project.forge(*arguments.split(), "")

    assert ended.returncode == 2
    assert "leave the option out" in ended.stderr
