"""`forge doctor` and `forge migrate` warn about unneeded rights on Forge's objects."""

import json
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from forge.operations.findings.rights import check_rights
from forge.store import doctor
from forge.store.connection.database import Database
from forge.store.roles import ROLES, Grant, grant_roles, granted_rights, held
from tests.cli.command import Project
from tests.security.logins import STRANGER

OWNER = "forge_test_owner"


@pytest.fixture
def project(granted: Database) -> Project:
    return Project(granted.url)


@pytest.fixture
def owned(empty_url: str) -> Iterator[Project]:
    """An empty database in which an ordinary role runs `forge migrate`."""
    with psycopg.connect(empty_url, autocommit=True) as admin:
        admin.execute(f"create role {OWNER} login createrole".encode())
        admin.execute(f"grant create on schema public to {OWNER}".encode())
        yield Project(empty_url.replace("//forge@", f"//{OWNER}@"))
        admin.execute(f"drop owned by {OWNER}, forge_api, forge_worker cascade".encode())
        admin.execute(f"drop role {OWNER}".encode())


def warnings(project: Project, command: str) -> dict[str, str]:
    """What a command warns about, with the advice."""
    found = json.loads(project.forge(command, "--json").stdout)
    listed = found["findings"] if command == "doctor" else found["warnings"]
    return {
        entry["message"]: entry["action"]
        for entry in listed
        if entry["code"]
        in ("superuser_owner", "schema_creators", "excess_rights", "lacking_rights")
    }


async def test_the_script_and_the_catalog_agree_on_every_right(granted: Database) -> None:
    found = await granted.run(doctor.rights_held(list(ROLES)))

    assert {held(row, row["role"]) for row in found} == granted_rights()
    assert Grant("forge_api", "forge_jobs", "input", "INSERT") in granted_rights()


@pytest.mark.parametrize("command", ["doctor", "migrate"])
def test_both_commands_warn_of_a_superuser_and_of_roles_with_too_many_rights(
    project: Project, command: str
) -> None:
    project.rows("grant update, delete on forge_jobs to forge_api")

    found = warnings(project, command)
    shown = project.forge(command)

    assert list(found) == [
        "Forge's tables or functions belong to superuser forge",
        "forge_api has more rights than `forge migrate --roles` grants: "
        "DELETE, UPDATE on table forge_jobs",
    ]
    for message in found:
        assert message in (shown.stdout if command == "doctor" else shown.stderr)


async def test_a_role_that_lacks_what_an_upgrade_brought_is_named(granted: Database) -> None:
    connection = await granted.connect()
    await connection.execute("revoke select on forge_pauses from forge_worker")
    await connection.execute("revoke insert (input) on forge_jobs from forge_api")
    await connection.close()

    found = [
        finding
        for finding in await check_rights(granted, is_embedded=True)
        if finding.code == "lacking_rights"
    ]
    await grant_roles(granted)
    granted_again = await check_rights(granted, is_embedded=True)

    assert [finding.message for finding in found] == [
        "forge_api lacks rights that this version needs, on forge_jobs",
        "forge_worker lacks rights that this version needs, on forge_pauses",
    ]
    assert "lacking_rights" not in {finding.code for finding in granted_again}


def test_an_ordinary_owner_has_nothing_to_be_warned_about(owned: Project) -> None:
    assert owned.json("migrate", "--roles")["warnings"] == []
    assert owned.forge("migrate").stderr == ""
    assert warnings(owned, "doctor") == {}


@pytest.mark.parametrize(
    ("statement", "message", "advice"),
    [
        (
            "grant update, delete on forge_jobs to forge_api",
            "excess_rights: forge_api has more rights than `forge migrate --roles` grants: "
            "DELETE, UPDATE on table forge_jobs",
            "revoke all on table forge_jobs from forge_api; then run `forge migrate --roles`",
        ),
        (
            "grant update (status) on forge_jobs to forge_api",
            "excess_rights: forge_api has more rights than `forge migrate --roles` grants: "
            "UPDATE on table forge_jobs",
            "revoke all on table forge_jobs from forge_api; then run `forge migrate --roles`",
        ),
        (
            "grant select on forge_jobs to public",
            "excess_rights: PUBLIC has more rights than `forge migrate --roles` grants: "
            "SELECT on table forge_jobs",
            "revoke all on table forge_jobs from PUBLIC; then run `forge migrate --roles`",
        ),
        (
            "grant execute on function forge_job_estimates to public",
            "excess_rights: PUBLIC has more rights than `forge migrate --roles` grants: "
            "EXECUTE on function forge_job_estimates",
            "revoke all on function forge_job_estimates from PUBLIC; "
            "then run `forge migrate --roles`",
        ),
        (
            "grant create on schema public to public",
            "schema_creators: PUBLIC can create objects in schema public, next to Forge's",
            "revoke create on schema public from PUBLIC",
        ),
        (
            f"grant create on schema public to {STRANGER}",
            f"schema_creators: {STRANGER} can create objects in schema public, next to Forge's",
            f"revoke create on schema public from {STRANGER}",
        ),
        (
            "alter role forge_api bypassrls",
            "excess_rights: forge_api bypasses row security",
            "alter role forge_api nobypassrls",
        ),
        (
            "grant forge_worker to forge_api",
            "excess_rights: forge_api has more rights than it needs, as a member of forge_worker",
            "revoke forge_worker from forge_api",
        ),
        (
            "grant forge to forge_api",
            "excess_rights: forge_api is a member of forge, which owns Forge's tables",
            "revoke forge from forge_api",
        ),
    ],
)
async def test_rights_that_nothing_needs_are_found_and_the_advice_removes_them(
    granted: Database, psql: Any, statement: str, message: str, advice: str
) -> None:
    before = await check_rights(granted, is_embedded=True)

    await psql.execute(statement)
    found = await check_rights(granted, is_embedded=True)
    await psql.execute(advice.removesuffix("; then run `forge migrate --roles`"))
    await grant_roles(granted)

    assert before == []
    assert [f"{entry.code}: {entry.message}"[: len(message)] for entry in found] == [message]
    assert [entry.action for entry in found] == [advice]
    assert await check_rights(granted, is_embedded=True) == []
