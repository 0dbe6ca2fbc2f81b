"""`forge migrate` on an empty database."""

import pytest

from forge.store.migrate import all_migrations
from tests.cli.command import Project


@pytest.fixture
def empty(empty_url: str) -> Project:
    """The example app on a database without tables."""
    return Project(empty_url)


def test_migrate_reports_applied_migrations(empty: Project) -> None:
    first = empty.forge("migrate")
    second = empty.forge("migrate")

    assert first.stdout.splitlines() == [f"applied {step}" for step in all_migrations()]
    assert second.returncode == 0
    assert "nothing to do" in second.stdout


def test_migrate_reports_as_json(empty: Project) -> None:
    first = empty.json("migrate", "--app", "shop:app", "--roles")
    second = empty.json("migrate")

    assert first["applied"] == [str(migration) for migration in all_migrations()]
    assert first["roles"] == ["forge_api", "forge_worker"]
    assert "greet" in first["job_types"]
    assert [warning["code"] for warning in second.pop("warnings")] == ["superuser_owner"]
    nothing = {"applied": [], "transport": None, "roles": [], "job_types": []}
    assert second == {**nothing, "signs_callers": None, "waiting_index": None}


def test_printed_sql_creates_the_same_schema(empty: Project) -> None:
    printed = empty.forge("migrate", "--sql")
    assert empty.rows("select to_regclass('forge_jobs')") == [(None,)]

    empty.rows(printed.stdout)

    assert "nothing to do" in empty.forge("migrate").stdout
    assert empty.forge("doctor").returncode == 0


def test_migrate_registers_job_types(empty: Project) -> None:
    ended = empty.forge("migrate", "--app", "shop:app")

    assert ended.returncode == 0, ended.stderr
    known = empty.rows("select worker_capability from forge_job_types where name = 'render'")
    assert known == [("gpu",)]


def test_roles_option_is_idempotent(empty: Project) -> None:
    for _ in range(2):
        assert empty.forge("migrate", "--roles").returncode == 0

    grants = empty.row(
        """select has_table_privilege('forge_api', 'forge_jobs', 'select'),
                  has_column_privilege('forge_api', 'forge_jobs', 'status', 'update'),
                  has_column_privilege('forge_worker', 'forge_jobs', 'status', 'update')"""
    )
    assert grants == (True, False, True)


def test_commands_without_tables_recommend_migrate(empty: Project) -> None:
    for command in (("jobs", "list"), ("dispatch", "greet", "--app", "shop:app"), ("workers",)):
        ended = empty.forge(*command)

        assert ended.returncode == 1
        assert "run `forge migrate`" in ended.stderr
