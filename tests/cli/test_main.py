"""All commands: finding the app, one-line errors, exit codes."""

import json
import shutil
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.cli.command import APPS, Project, project_fixture

__all__ = ["project_fixture"]


def test_version_and_help(project: Project) -> None:
    assert project.forge("--version").stdout.split()[-1] == version("forge-jobs")
    helped = project.forge("--help").stdout
    for command in ("bench", "dev", "dispatch", "doctor", "jobs", "migrate", "worker", "workers"):
        assert f"\n  {command} " in helped


def test_missing_app_is_a_one_line_error(project: Project) -> None:
    for reference, code, says in (
        ("nowhere:app", 1, "module 'nowhere' not found"),
        ("shop:shop", 1, "has no attribute 'shop'"),
        ("shop:greet", 1, "not a forge.Forge"),
        ("broken:app", 1, "RuntimeError: the settings are missing"),
        ("shop", 2, 'must be "module:app"'),
    ):
        ended = project.forge("worker", reference)

        assert ended.returncode == code, reference
        assert says in ended.stderr
        assert len(ended.stderr.splitlines()) == 1


def test_import_error_names_file_and_line(project: Project) -> None:
    ended = project.forge("migrate", "--app", "broken:app")

    assert "broken.py, line 3" in ended.stderr


def test_traceback_is_printed_only_on_request(project: Project) -> None:
    plain = project.forge("migrate", "--app", "broken:app")
    by_option = project.forge("migrate", "--app", "broken:app", "--traceback")
    project.env["FORGE_TRACEBACK"] = "1"
    by_variable = project.forge("migrate", "--app", "broken:app")

    assert "Traceback" not in plain.stderr
    assert "Traceback" in by_option.stderr
    assert "Traceback" in by_variable.stderr


def test_the_app_is_found_by_the_settings(project: Project, tmp_path: Path) -> None:
    shutil.copy(APPS / "shop.py", tmp_path)
    (tmp_path / "forge.toml").write_text('app = "shop:app"\n')
    elsewhere = tmp_path / "other.toml"
    elsewhere.write_text('app = "shop:app"\n[database]\nurl = "postgresql://nobody@[::1]:1/no"\n')
    project.folder = tmp_path

    by_file = project.forge("migrate")
    by_config = project.forge("migrate", "--config", str(elsewhere))

    assert "greet" in by_file.stdout
    assert by_config.returncode == 0, "FORGE_DATABASE_URL overrides the file"
    assert "greet" in by_config.stdout


def test_config_option_applies_to_the_whole_app(project: Project, tmp_path: Path) -> None:
    strict = tmp_path / "strict.toml"
    strict.write_text('[payload]\nmax_input = "1KB"\n')
    long = json.dumps({"name": "x" * 2000})

    ended = project.forge("dispatch", "greet", long, "--app", "shop:app", "--config", str(strict))

    assert ended.returncode == 2
    assert "the limit is 1,024 bytes" in ended.stderr
    assert project.rows("select id from forge_jobs") == []


@pytest.mark.parametrize(
    "command",
    [
        "dlq show",
        "dlq list --cursor",
        "dlq groups --tenant",
        "audit --dlq",
        "schedules list --tenant",
    ],
)
def test_number_beyond_64_bits_is_a_usage_error(project: Project, command: str) -> None:
    ended = project.forge(*command.split(), str(2**63))

    assert ended.returncode == 2
    assert "64-bit integer" in ended.stderr


def test_invalid_settings_are_a_usage_error(project: Project, tmp_path: Path) -> None:
    (tmp_path / "forge.toml").write_text("[worker]\nmax_concurrent = 0\nsped = 1\n")
    project.folder = tmp_path

    ended = project.forge("jobs", "list")

    assert ended.returncode == 2
    assert "[worker] max_concurrent" in ended.stderr
    assert "[worker] sped" in ended.stderr


def test_missing_app_argument_is_explained(project: Project) -> None:
    for command in ("worker", "dev"):
        ended = project.forge(command)

        assert ended.returncode == 2
        assert "shop.jobs:app" in ended.stderr
