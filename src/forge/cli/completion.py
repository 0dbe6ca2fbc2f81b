"""`forge completion`: prints the script that lets a shell complete commands and options."""

import json

import click
from click.shell_completion import get_completion_class

from forge.cli.options import json_option, traceback_option

SHELLS = ["bash", "zsh", "fish"]
# Set by the script when it asks for completions; click answers.
VARIABLE = "_FORGE_COMPLETE"


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@json_option
@traceback_option
@click.pass_context
def completion(ctx: click.Context, shell: str, as_json: bool) -> None:
    """Print the completion script for SHELL.

    bash: add `eval "$(forge completion bash)"` to ~/.bashrc; zsh: the same with zsh to ~/.zshrc;
    fish: `forge completion fish > ~/.config/fish/completions/forge.fish`.
    """
    complete = get_completion_class(shell)
    assert complete is not None
    script = complete(ctx.find_root().command, {}, "forge", VARIABLE)
    # Without .source(), which looks for bash on this machine to check its version.
    text = script.source_template % script.source_vars()
    click.echo(json.dumps({"shell": shell, "script": text}) if as_json else text)
