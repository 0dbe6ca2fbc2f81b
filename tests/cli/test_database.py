"""Which database a command uses: the configured one, else the embedded one."""

import re
import shutil
from pathlib import Path

import pytest

from forge.core.database_url import with_database
from tests.cli.command import APPS, Project

NOWHERE = "postgresql://nobody@127.0.0.1:1/nothing"


@pytest.fixture
def project(database_url: str, tmp_path: Path) -> Project:
    """An app in a folder without settings."""
    shutil.copy(APPS / "shop.py", tmp_path)
    project = Project(database_url, tmp_path)
    project.env = {"FORGE_DATABASE_URL": ""}
    return project


def test_the_url_of_the_file_wins_over_the_embedded_server(project: Project) -> None:
    configure(project, project.url)

    assert project.forge("migrate", "--app", "shop:app").returncode == 0
    assert project.dispatch("greet", {"name": "Ada"}) == str(
        project.row("select id from forge_jobs")[0]
    )
    assert not (project.folder / ".forge").exists()


def test_the_variable_wins_over_the_file(project: Project) -> None:
    configure(project, NOWHERE)
    project.env["FORGE_DATABASE_URL"] = project.url

    assert project.forge("jobs", "list").returncode == 0


def test_config_option_overrides_the_settings_of_the_app(project: Project) -> None:
    configure(project, NOWHERE)
    other = project.folder / "other.toml"
    other.write_text(f'[database]\nurl = "{project.url}"\n')

    ended = project.forge("migrate", "--app", "shop:app", "--config", str(other))

    assert ended.returncode == 0, ended.stderr
    assert project.rows("select name from forge_job_types where name = 'greet'") == [("greet",)]


def test_unavailable_database_is_not_replaced_by_another(project: Project) -> None:
    configure(project, NOWHERE)

    for command in (
        ("jobs", "list"),
        ("workers",),
        ("migrate",),
        ("audit",),
    ):
        ended = project.forge(*command)

        assert ended.returncode == 1, command
        (line,) = ended.stderr.splitlines()
        assert 'the database "nothing" at 127.0.0.1:1 does not answer' in line
        assert "FORGE_DATABASE_URL or [database] url" in line
    assert not (project.folder / ".forge").exists()


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("postgresql://forge:hunter2@127.0.0.1:1/shop", '"shop" at 127.0.0.1:1 '),
        ("postgresql://forge:hunter2@127.0.0.1:1,127.0.0.1:2/", '"forge" at 127.0.0.1:1, 127'),
        ("postgresql://127.0.0.1:1/?user=me&password=hunter2&dbname=a", '"a" at 127.0.0.1:1 '),
        # Read as a database, it is the end of a password.
        ("postgresql://127.0.0.1:1/hunter2@127.0.0.1/shop", "in the URL "),
    ],
)
def test_connection_error_names_the_host_and_never_the_password(
    project: Project, url: str, place: str
) -> None:
    project.env["FORGE_DATABASE_URL"] = url

    ended = project.forge("jobs", "list")

    assert ended.returncode == 1
    assert f"the database {place}" in ended.stderr
    assert "hunter2" not in ended.stderr


def test_refused_login_names_the_host(project: Project) -> None:
    project.env["FORGE_DATABASE_URL"] = with_database(project.url, "not_there")

    ended = project.forge("jobs", "list")

    assert re.search(r'the database "not_there" at \S+:\d+ rejected the login', ended.stderr)


def test_invalid_url_is_a_usage_error_and_is_not_printed(project: Project) -> None:
    project.env["FORGE_DATABASE_URL"] = "postgresql://forge:hunter2/x@127.0.0.1/shop"

    ended = project.forge("jobs", "list", "--traceback")

    assert ended.returncode == 2
    assert "write it as postgresql://user:password@host" in ended.stderr
    assert "hunter2" not in ended.stderr


def configure(project: Project, url: str) -> None:
    (project.folder / "forge.toml").write_text(f'[database]\nurl = "{url}"\n')
