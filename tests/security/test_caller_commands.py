"""`forge migrate --roles`, `server` and `doctor` report whether callers are signed and accepted."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import APPS, Project
from tests.faults.kit.process import wait_until
from tests.http.test_server_command import address, let_in
from tests.store.row_security.conftest import as_role

OTHER = "another secret of thirty-two characters or more"


@pytest.fixture
def project(database_url: str, tmp_path: Path) -> Project:
    """An app whose server and doctor log in as forge_api, with a secret and a token."""
    (tmp_path / "shop.py").write_text((APPS / "shop.py").read_text())
    project = Project(database_url, tmp_path)
    let_in(project, "--role", "user")
    return project


def migrate(project: Project, secret: str | None = None) -> str:
    """Make the roles as the owner, and go on as forge_api."""
    settings = project.folder / "forge.toml"
    ours = settings.read_text()
    if secret is None:
        settings.write_text(ours.replace("secret =", "# secret ="))
    project.env |= {"FORGE_DATABASE_URL": project.url, "FORGE_AUTH_SECRET": secret or ""}
    ended = project.forge("migrate", "--roles")
    assert ended.returncode == 0, ended.stderr
    settings.write_text(ours)
    del project.env["FORGE_AUTH_SECRET"]
    project.env["FORGE_DATABASE_URL"] = as_role("forge_api", project.url)
    return ended.stdout


def finding(project: Project) -> dict[str, Any]:
    findings: list[dict[str, Any]] = json.loads(project.forge("doctor", "--json").stdout)[
        "findings"
    ]
    return next(each for each in findings if each["code"].endswith("callers"))


def test_a_server_with_the_registered_secret_starts(project: Project) -> None:
    said = migrate(project, "a secret of thirty-two characters or more")

    with project.start("server", "shop:app", "--port", "0") as child:
        address(child)
        assert "not signed" not in child.output()

    assert "callers: signed" in said
    assert finding(project)["severity"] == "ok"


def test_a_server_with_another_secret_fails_with_a_remedy(project: Project) -> None:
    migrate(project, OTHER)

    ended = project.forge("server", "shop:app", "--port", "0")

    assert ended.returncode == 2
    assert "forge migrate --roles" in ended.stderr
    assert finding(project)["severity"] == "problem"


def test_without_a_key_server_and_doctor_warn_about_row_security(project: Project) -> None:
    said = migrate(project)

    with project.start("server", "shop:app", "--port", "0") as child:
        address(child)
        warned = "catches forgotten filters, not injected SQL"
        wait_until(lambda: warned in child.output(), 10, "the server has warned")

    assert "callers: not signed" in said
    assert finding(project)["severity"] == "warning"


def test_a_key_stays_when_the_roles_are_made_without_a_secret(project: Project) -> None:
    migrate(project, OTHER)

    assert "callers: signed" in migrate(project)
