"""`forge completion`: shells complete commands and options."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cli.command import FORGE
from tests.cli.terminal import terminal
from tests.faults.kit.process import wait_until


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_script_of_a_shell_is_printed(shell: str) -> None:
    ended = subprocess.run(
        [FORGE, "completion", shell], capture_output=True, text=True, check=True, timeout=60
    )

    assert f"_FORGE_COMPLETE={shell}_complete" in ended.stdout


def test_commands_and_options_are_completed() -> None:
    assert completed("forge jo") == ["jobs"]
    assert "reprioritise" in completed("forge jobs re")
    assert completed("forge init --fa") == ["--fastapi"]


def test_an_interactive_bash_completes_what_is_typed(tmp_path: Path) -> None:
    bash = shutil.which("bash")
    assert bash is not None
    rc = tmp_path / "bashrc"
    rc.write_text('eval "$(forge completion bash)"\nPS1="ready> "\n')
    path = f"{FORGE.parent}{os.pathsep}{os.environ['PATH']}"
    env = {"PATH": path, "HOME": str(tmp_path), "TERM": "xterm", "LANG": "C.UTF-8"}

    with terminal([bash, "--noprofile", "--rcfile", rc, "-i"], env, tmp_path) as shell:
        wait_until(lambda: "ready> " in shell.shown, 60, "the prompt is shown")
        try:
            shell.press("forge jobs repr\t")
            wait_until(lambda: "jobs reprioritise " in shell.shown, 30, "it is completed")
            shell.press("--rea\t")
            wait_until(lambda: "reprioritise --reason " in shell.shown, 30, "the option, too")
        finally:
            shell.press("\x15exit\r")  # it ignores SIGTERM; Ctrl-U erases the line
            shell.wait(30)

    assert "not found" not in shell.shown


def completed(line: str) -> list[str]:
    words = line.split()
    env = os.environ | {
        "_FORGE_COMPLETE": "bash_complete",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
    }
    ended = subprocess.run([FORGE], env=env, capture_output=True, text=True, check=True, timeout=60)
    return [each.split(",")[1] for each in ended.stdout.split()]
