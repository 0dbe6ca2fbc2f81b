"""`forge completion`: shells complete commands and options."""

import os
import shutil
import subprocess

import pytest

from tests.cli.command import FORGE


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell_is_printed(shell: str) -> None:
    ended = subprocess.run(
        [FORGE, "completion", shell], capture_output=True, text=True, check=True, timeout=60
    )

    assert f"_FORGE_COMPLETE={shell}_complete" in ended.stdout


def test_commands_and_options_are_completed() -> None:
    assert completed("forge jo") == ["jobs"]
    assert "reprioritise" in completed("forge jobs re")
    assert completed("forge init --fa") == ["--fastapi"]


def test_bash_accepts_the_script() -> None:
    bash = shutil.which("bash")
    assert bash is not None
    script = subprocess.run([FORGE, "completion", "bash"], capture_output=True, check=True).stdout

    subprocess.run([bash, "-n"], input=script, check=True, timeout=60)


def completed(line: str) -> list[str]:
    words = line.split()
    env = os.environ | {
        "_FORGE_COMPLETE": "bash_complete",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
    }
    ended = subprocess.run([FORGE], env=env, capture_output=True, text=True, check=True, timeout=60)
    return [each.split(",")[1] for each in ended.stdout.split()]
